/** Calls `call` for each item, with at most `atOnce` concurrent calls. */
export async function inParallel<T>(
  items: Iterable<T>,
  call: (item: T) => Promise<void>,
  atOnce = 8,
): Promise<void> {
  const open = items[Symbol.iterator]();
  const work = async () => {
    for (let next = open.next(); !next.done; next = open.next()) await call(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
