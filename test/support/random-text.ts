/** Text of all sorts: letters, controls, lone surrogates, emoji, right-to-left and combining marks. */
export function randomText(random: () => number): string {
  const pools = [
    [0x20, 0x7e],
    [0x00, 0x1f],
    [0xd800, 0xdfff],
    [0x1f300, 0x1faff],
    [0x0590, 0x06ff],
    [0x0300, 0x036f],
    [0x3040, 0x30ff],
    [0x4e00, 0x9fff],
    [0x2000, 0x206f],
    [0xfe00, 0xffff],
    [0x0900, 0x0dff],
  ] as const;
  const length = Math.floor(random() * 60);
  return Array.from({ length }, () => {
    if (random() < 0.15) return " ";
    const [from, to] = pools[Math.floor(random() * pools.length)] ?? pools[0];
    return String.fromCodePoint(from + Math.floor(random() * (to - from + 1)));
  }).join("");
}

/** The same sequence in every run (mulberry32). */
export function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
