/** Collects with a watch every version of objects that the API server stores. */

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { eventually } from "../eventually.ts";

const WATCH_SECONDS = 3_600;

export interface Version {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubernetesObject;
}

export class History implements Disposable {
  readonly #client: ClusterClient;
  readonly #kind: string;
  readonly #namespace: string;
  readonly #stream: Readable;
  readonly #versions: Version[] = [];
  #failure: string | undefined;

  private constructor(client: ClusterClient, kind: string, namespace: string, stream: Readable) {
    this.#client = client;
    this.#kind = kind;
    this.#namespace = namespace;
    this.#stream = stream;
    const lines = createInterface({ input: stream });
    lines.on("line", (line) => {
      const event = JSON.parse(line) as Version | { type: "ERROR" };
      if (event.type === "ERROR") this.#failure = line;
      else this.#versions.push(event);
    });
    lines.on("close", () => {
      this.#failure ??= "the API server ended the watch";
    });
  }

  /** Starts the watch. The existing objects are the first versions. */
  static async of(client: ClusterClient, kind: string, namespace: string): Promise<History> {
    // A watch without a resource version starts with the existing objects.
    const options = { namespace, resourceVersion: undefined, timeoutSeconds: WATCH_SECONDS };
    return new History(client, kind, namespace, await client.openWatch(kind, options));
  }

  /** Returns all versions up to now, in the order in which the API server stored them. */
  async versions(): Promise<readonly Version[]> {
    const now = await this.#client.list(this.#kind, { namespace: this.#namespace });
    await eventually("the watch has reported the current objects", () => {
      if (this.#failure !== undefined) throw new Error(this.#failure);
      return now.every((object) => this.#versions.some((version) => isSame(version.object, object)));
    });
    return this.#versions.toSorted((a, b) => versionOf(a.object) - versionOf(b.object));
  }

  [Symbol.dispose](): void {
    this.#stream.destroy();
  }
}

/** Returns the resource version as a number. It increases with every write to the cluster, for all kinds. */
export function versionOf({ metadata }: KubernetesObject): number {
  return Number(metadata.resourceVersion);
}

function isSame(one: KubernetesObject, other: KubernetesObject): boolean {
  return one.metadata.uid === other.metadata.uid && versionOf(one) === versionOf(other);
}
