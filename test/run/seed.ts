/** The given seed, or a new one. Tests derive their random choices from the environment variable SEED. */
export function chooseSeed(given: string | undefined): string {
  if (given) return given;
  return String(Math.floor(Math.random() * 2 ** 31));
}
