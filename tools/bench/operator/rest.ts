/** The requests of an operator to the API server while no object changes. */
import type { AuditLog } from "./audit.ts";
import type { Plot } from "./field.ts";

export interface Rest {
  readonly seconds: number;
  /** Writes of objects other than a Lease. */
  readonly writes: number;
  readonly leaseWrites: number;
  /** Reads of single objects, and lists. */
  readonly gets: number;
  /** Watches that the operator opened again after the server had ended them at their time limit. */
  readonly watches: number;
  /** The unexpected requests without repetitions, in the form `verb resource`. */
  readonly unwanted: readonly string[];
}

/** Counts the requests of each operator since the last read of the audit log. */
export function countRequests(audit: AuditLog, plots: readonly Plot[], seconds: number): Rest[] {
  const requests = [...audit.news()];
  return plots.map(({ user }) => {
    const own = requests.filter((request) => request.user === user);
    const leases = own.filter(({ resource }) => resource === "leases");
    const others = own.filter(({ resource, verb }) => resource !== "leases" && verb !== "watch");
    const isRead = (verb: string) => verb === "get" || verb === "list";
    const leaseReads = leases.filter(({ verb }) => isRead(verb));
    return {
      seconds,
      writes: others.filter(({ verb }) => !isRead(verb)).length,
      leaseWrites: leases.length - leaseReads.length,
      gets: others.filter(({ verb }) => isRead(verb)).length + leaseReads.length,
      watches: own.filter(({ verb }) => verb === "watch").length,
      unwanted: [...new Set([...others, ...leaseReads].map(({ verb, resource }) => `${verb} ${resource}`))],
    };
  });
}
