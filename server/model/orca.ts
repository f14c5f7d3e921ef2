import type { Admission } from "./admission.ts";

/**
 * Returns the load of this replica as an Open Request Cost Aggregation report. The format is the text form of
 * the header, `TEXT name=value, …`, with the field names of xds.data.orca.v3.OrcaLoadReport.
 */
export function orcaReport(admission: Admission): string {
  const { maxStreams } = admission.limits;
  const utilization = (admission.speaking + admission.queued) / maxStreams;
  return [
    `TEXT application_utilization=${utilization.toFixed(3)}`,
    `named_metrics.streams=${admission.speaking}`,
    `named_metrics.capacity=${maxStreams}`,
    `named_metrics.queue=${admission.queued}`,
  ].join(", ");
}
