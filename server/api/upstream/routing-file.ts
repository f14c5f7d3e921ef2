import type { RoutingTable } from "../../../config/contract/routing.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import { watchFile } from "../../../lib/watched-file.ts";
import type { ReplicaDirectory } from "./replicas.ts";
import { parseRoutingTable } from "./routing-table.ts";

/**
 * The routing table as a file, outside Kubernetes: a route's service is its only replica. Changes apply
 * within a second.
 */
export function createFileDirectory(path: string, log: Log, clock: Clock): ReplicaDirectory {
  const file = watchFile<RoutingTable>({
    path,
    parse: parseRoutingTable,
    whenAbsent: "keep",
    clock,
    onError: (error) => log.error({ err: error }, "the routing file is wrong; the last good one stays"),
  });
  if (!file.current()) log.warn({ path }, "the routing file is not there yet; waiting for it");
  return {
    table: () => file.current(),
    replicas: (route) => (route.idle ? [] : [new URL(route.service).origin]),
    onChange: file.onChange,
    close: file.close,
  };
}
