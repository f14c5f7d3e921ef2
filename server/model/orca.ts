import type { Admission } from "./admission.ts";

/**
 * The load of this replica as an Open Request Cost Aggregation report in the text form of the header
 * (`TEXT name=value, …`; field names as in xds.data.orca.v3.OrcaLoadReport).
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
