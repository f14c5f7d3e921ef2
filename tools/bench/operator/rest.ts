/** What an operator asks of the API server while nobody changes anything. */
import type { AuditLog } from "./audit.ts";
import type { Plot } from "./field.ts";

export interface Rest {
  readonly seconds: number;
  /** Writes of anything but a Lease. */
  readonly writes: number;
  readonly leaseWrites: number;
  /** Single objects, and lists. */
  readonly gets: number;
  /** Watches that the server ended because their time was up, and that were opened anew. */
  readonly watches: number;
  /** The first few that should not be, as `verb resource`. */
  readonly unwanted: readonly string[];
}

/** Counts what stands in the log since it was read last. */
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
