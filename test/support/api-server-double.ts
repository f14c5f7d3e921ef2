import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Stored {
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> };
}

/** Lists and watches as a Kubernetes API server answers them, over a real socket, with faults at will. */
export interface ApiServerDouble {
  readonly url: string;
  /** Requests so far, as path and query. */
  readonly requests: string[];
  readonly authorizations: Set<string>;
  /** Puts an object, by collection (`configmaps`, `endpointslices`), and tells the watchers. */
  put(collection: string, object: Stored & Record<string, unknown>): void;
  remove(collection: string, name: string): void;
  /** Changes the store behind the watchers' backs, as if they had missed it. */
  putSilently(collection: string, object: Stored & Record<string, unknown>): void;
  /** Sends a raw line to every watcher. */
  say(line: string): void;
  /** Drops every watch's connection. */
  dropWatches(): void;
  /** Ends every watch as the server does when its time is over. */
  endWatches(): void;
  /** Answers everything with this status, until undefined. */
  fail: number | undefined;
  close(): Promise<void>;
}

export async function startApiServerDouble(): Promise<ApiServerDouble> {
  const objects = new Map<string, Map<string, object>>();
  const watchers = new Set<{ collection: string; response: ServerResponse }>();
  /** Every change that watchers were told of, so that a watch goes on from the version that it names. */
  const told: { collection: string; version: number; line: string }[] = [];
  let version = 1;
  const collectionOf = (name: string) => {
    const found = objects.get(name) ?? new Map<string, object>();
    objects.set(name, found);
    return found;
  };
  const stamp = (object: Stored & Record<string, unknown>) => {
    version += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
  };
  const tell = (collection: string, type: string, object: object) => {
    const line = `${JSON.stringify({ type, object })}\n`;
    told.push({ collection, version, line });
    for (const watcher of watchers) if (watcher.collection === collection) watcher.response.write(line);
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    double.requests.push(`${url.pathname}${url.search}`);
    double.authorizations.add(request.headers.authorization ?? "");
    if (double.fail !== undefined) {
      response.writeHead(double.fail).end(JSON.stringify({ kind: "Status", code: double.fail }));
      return;
    }
    const collection = url.pathname.split("/").at(-1) ?? "";
    response.writeHead(200, { "content-type": "application/json" });
    if (url.searchParams.get("watch") === "1") {
      const watcher = { collection, response };
      watchers.add(watcher);
      response.once("close", () => watchers.delete(watcher));
      response.flushHeaders();
      const since = Number(url.searchParams.get("resourceVersion"));
      for (const change of told) {
        if (change.collection === collection && change.version > since) response.write(change.line);
      }
      return;
    }
    const items = [...collectionOf(collection).values()];
    response.end(JSON.stringify({ metadata: { resourceVersion: String(version) }, items }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const double: ApiServerDouble = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    authorizations: new Set(),
    fail: undefined,
    put(collection, object) {
      const stamped = stamp(object);
      const type = collectionOf(collection).has(object.metadata.name) ? "MODIFIED" : "ADDED";
      collectionOf(collection).set(object.metadata.name, stamped);
      tell(collection, type, stamped);
    },
    remove(collection, name) {
      const object = stamp((collectionOf(collection).get(name) ?? {}) as Stored & Record<string, unknown>);
      collectionOf(collection).delete(name);
      tell(collection, "DELETED", object);
    },
    putSilently: (collection, object) =>
      void collectionOf(collection).set(object.metadata.name, stamp(object)),
    say: (line) => {
      for (const { response } of watchers) response.write(`${line}\n`);
    },
    dropWatches: () => {
      for (const { response } of watchers) response.destroy();
    },
    endWatches: () => {
      for (const { response } of watchers) response.end();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return double;
}
