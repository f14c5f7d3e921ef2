export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/**
 * Returns a quantile by the nearest-rank method. The result is always a measured value.
 * @param sorted the values in ascending order. The list must not be empty.
 * @param share the share of the values, 0 to 1.
 */
export function quantile(sorted: readonly number[], share: number): number {
  // The subtraction corrects rounding: 0.07 * 100 is slightly above 7.
  const rank = Math.max(1, Math.ceil(share * sorted.length - 1e-9));
  return sorted[Math.min(rank, sorted.length) - 1] ?? Number.NaN;
}

/** Returns the quantiles, or undefined if there are no values. */
export function quantiles(sorted: readonly number[]): Quantiles | undefined {
  if (sorted.length === 0) return undefined;
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), p99: quantile(sorted, 0.99) };
}

/**
 * Returns the values at 0, 1, … 100 percent. The size of this distribution does not depend on the number of
 * values.
 */
export function distribution(sorted: readonly number[]): number[] {
  if (sorted.length === 0) return [];
  return Array.from({ length: 101 }, (_, percent) => quantile(sorted, percent / 100));
}

export function ascending(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => a - b);
}
