/** The load of a replica, which the replica sends in a header of each response. */
export interface LoadReport {
  /** The number of requests that are in progress or queued. */
  readonly streams: number;
  /** The highest number of requests that the replica synthesizes at the same time. */
  readonly capacity: number;
}

const longestReport = 1024;

/**
 * Parses a report of Open Request Cost Aggregation in the text form of its header (`TEXT name=value, …`). The
 * result is undefined if a required value is missing, because replicas of older versions do not send all
 * values.
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
  const [streams, queue, capacity] = ["streams", "queue", "capacity"].map((name) =>
    Number(metrics.get(`named_metrics.${name}`) ?? Number.NaN),
  ) as [number, number, number];
  const isCount = (value: number) => Number.isInteger(value) && value >= 0;
  if (![streams, queue, capacity].every(isCount) || capacity === 0) return undefined;
  return { streams: streams + queue, capacity };
}
