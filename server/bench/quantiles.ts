export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/**
 * The smallest value that at least this share of the values does not exceed (nearest rank). It is always a
 * measured value. @param sorted ascending and not empty. @param share 0..1.
 */
export function quantile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length - 1e-9)); // 0.07 * 100 is a little above 7
  return sorted[Math.min(rank, sorted.length) - 1] ?? Number.NaN;
}

/** Undefined where nothing was measured. */
export function quantiles(sorted: readonly number[]): Quantiles | undefined {
  if (sorted.length === 0) return undefined;
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), p99: quantile(sorted, 0.99) };
}

/** The values at 0, 1, … 100 percent: a distribution in bounded space, whatever the number of values. */
export function distribution(sorted: readonly number[]): number[] {
  if (sorted.length === 0) return [];
  return Array.from({ length: 101 }, (_, percent) => quantile(sorted, percent / 100));
}

export function ascending(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => a - b);
}
