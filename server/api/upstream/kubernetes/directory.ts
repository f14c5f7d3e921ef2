import { modelIds } from "../../../../config/contract/models.ts";
import { routingKey } from "../../../../config/contract/names.ts";
import type { Route, RoutingTable } from "../../../../config/contract/routing.ts";
import type { Clock } from "../../../../lib/clock.ts";
import type { Log } from "../../../../lib/log.ts";
import type { ReplicaDirectory } from "../replicas.ts";
import { parseRoutingTable } from "../routing-table.ts";
import type { ClusterAccess } from "./connection.ts";
import { type EndpointSlice, replicaUrls, serviceNameLabel } from "./endpoints.ts";
import { type FollowTiming, follow, type KubernetesItem } from "./follow.ts";

interface ConfigMap extends KubernetesItem {
  readonly data?: Readonly<Record<string, string>>;
}

export interface ClusterDirectoryOptions {
  readonly access: ClusterAccess;
  readonly namespace: string;
  /** The ConfigMap with the routing table. */
  readonly configMap: string;
  readonly log: Log;
  readonly random: () => number;
  readonly clock: Clock;
  readonly timing?: Partial<FollowTiming>;
}

/**
 * Watches the routing table, and the endpoints of the services in the table, through the Kubernetes API
 * server. Changes apply immediately.
 */
export function createClusterDirectory(options: ClusterDirectoryOptions): ReplicaDirectory {
  return new ClusterDirectory(options);
}

class ClusterDirectory implements ReplicaDirectory {
  readonly #options: ClusterDirectoryOptions;
  readonly #listeners = new Set<() => void>();
  readonly #stopTable: () => void;
  #stopSlices: () => void = () => undefined;
  #table: RoutingTable | undefined;
  #services = "";
  /** The base URLs of the replicas, by service name. */
  #replicas: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(options: ClusterDirectoryOptions) {
    this.#options = options;
    this.#stopTable = this.#follow<ConfigMap>(
      {
        path: `/api/v1/namespaces/${options.namespace}/configmaps`,
        fieldSelector: `metadata.name=${options.configMap}`,
      },
      (items) => this.#applyTable(items),
    );
  }

  table(): RoutingTable | undefined {
    return this.#table;
  }

  replicas(route: Route): readonly string[] {
    return route.idle ? [] : (this.#replicas.get(serviceName(route)) ?? []);
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  close(): void {
    this.#stopTable();
    this.#stopSlices();
  }

  #follow<Kind extends KubernetesItem>(
    query: { path: string; fieldSelector?: string; labelSelector?: string },
    onItems: (items: readonly Kind[]) => void,
  ): () => void {
    const { access, log, random, clock, timing } = this.#options;
    return follow<Kind>({ access, query, log, random, clock, onItems, ...(timing && { timing }) });
  }

  /** Applies a new routing table. If the table is deleted or invalid, the last valid table stays in use. */
  #applyTable(items: readonly ConfigMap[]): void {
    const text = items[0]?.data?.[routingKey];
    const { log, configMap } = this.#options;
    if (text === undefined) {
      log.warn(
        { configMap },
        `the ConfigMap ${configMap} does not exist or has no key ${routingKey}; waiting until the operator creates it`,
      );
      return;
    }
    try {
      this.#table = parseRoutingTable(text);
    } catch (error) {
      log.error(
        { err: error, configMap },
        "the routing table is invalid; the last valid routing table stays in use",
      );
      return;
    }
    this.#followServices(this.#table);
    this.#notifyListeners();
  }

  /** Watches the endpoints of the services in the table. */
  #followServices(table: RoutingTable): void {
    const routes = modelIds.flatMap((id) => table.models[id] ?? []);
    const services = [...new Set(routes.map(serviceName))].sort().join(",");
    if (services === this.#services) return;
    this.#services = services;
    this.#stopSlices();
    this.#stopSlices =
      services === ""
        ? () => undefined
        : this.#follow<EndpointSlice>(
            {
              path: `/apis/discovery.k8s.io/v1/namespaces/${this.#options.namespace}/endpointslices`,
              labelSelector: `${serviceNameLabel} in (${services})`,
            },
            (items) => this.#applySlices(items),
          );
  }

  #applySlices(slices: readonly EndpointSlice[]): void {
    const byService = Map.groupBy(slices, (slice) => slice.metadata.labels?.[serviceNameLabel] ?? "");
    this.#replicas = new Map([...byService].map(([name, group]) => [name, replicaUrls(group)]));
    this.#notifyListeners();
  }

  #notifyListeners(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Returns the first label of the host: `demo-mist` for `http://demo-mist.speech.svc:8080`. */
function serviceName({ service }: Route): string {
  return new URL(service).hostname.split(".", 1)[0] ?? "";
}
