/** What a replica says of its load with each answer. */
export interface LoadReport {
  /** Requests that it speaks or that wait there. */
  readonly streams: number;
  /** Requests that it speaks at once. */
  readonly capacity: number;
}

const longestReport = 1024;

/**
 * Reads an Open Request Cost Aggregation report in the text form of its header (`TEXT name=value, …`). Undefined where it does
 * not say what is needed, as of an older replica.
 */
export function readLoadReport(header: string | string[] | undefined): LoadReport | undefined {
  if (typeof header !== "string" || header.length > longestReport || !header.startsWith("TEXT "))
    return undefined;
  const metrics = new Map(
    header
      .slice("TEXT ".length)
      .split(",")
      .map((pair) => pair.trim().split("=", 2) as [string, string | undefined]),
  );
  const [speaking, queue, capacity] = ["streams", "queue", "capacity"].map((name) =>
    Number(metrics.get(`named_metrics.${name}`) ?? Number.NaN),
  ) as [number, number, number];
  const isCount = (value: number) => Number.isInteger(value) && value >= 0;
  if (![speaking, queue, capacity].every(isCount) || capacity === 0) return undefined;
  return { streams: speaking + queue, capacity };
}
