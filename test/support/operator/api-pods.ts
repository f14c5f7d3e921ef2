import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ApiLoad, loadPath, loadType, type PoolLoad } from "../../../config/contract/load.ts";
import { labels } from "../../../config/contract/names.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { OperatorHouse } from "./operator-house.ts";

/** Simulates the load endpoint of an API pod on a real socket. It reports the load that a test sets. */
export class ApiPod implements AsyncDisposable {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #readers: Set<(line: string) => void>;
  #load: ApiLoad;
  /** The `authorization` headers that clients of the endpoint sent. */
  readonly tokens: string[];

  private constructor(
    server: ReturnType<typeof createServer>,
    readers: Set<(line: string) => void>,
    tokens: string[],
  ) {
    this.#server = server;
    this.#readers = readers;
    this.tokens = tokens;
    this.port = (server.address() as AddressInfo).port;
    this.#load = { pools: {} };
  }

  static async start(): Promise<ApiPod> {
    const readers = new Set<(line: string) => void>();
    const tokens: string[] = [];
    const server = createServer((request, response) => {
      tokens.push(request.headers.authorization ?? "");
      if (request.url !== loadPath) return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": loadType });
      const send = (line: string) => void response.write(line);
      send(pod.#line());
      readers.add(send);
      response.once("close", () => readers.delete(send));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const pod = new ApiPod(server, readers, tokens);
    return pod;
  }

  get load(): ApiLoad {
    return this.#load;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Sets the load of a pool, and reports it. */
  tell(pool: string, load: Partial<PoolLoad>): void {
    const poolLoad: PoolLoad = { streams: 0, waiting: 0, replicas: {}, ...load };
    this.#load = { ...this.#load, pools: { ...this.#load.pools, [pool]: poolLoad } };
    for (const send of this.#readers) send(this.#line());
  }

  /** Sets the response of the license issuer, and reports it. */
  hear(licenseAnswer: string): void {
    this.#load = { ...this.#load, licenseAnswer };
    for (const send of this.#readers) send(this.#line());
  }

  /** Closes all connections. Clients can connect again. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #line(): string {
    return `${JSON.stringify(this.#load)}\n`;
  }
}

type Json = { [name: string]: unknown };

/** Creates a pod, and writes the status of a running pod, as the scheduler and the kubelet would. */
export async function putPod(
  house: OperatorHouse,
  name: string,
  podLabels: Record<string, string>,
  container: Json,
  podIP: string,
): Promise<KubernetesObject> {
  await house.admin.create({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: house.namespace, labels: podLabels },
    spec: { containers: [{ image: "x", ...container }] },
  });
  const pod = await house.mustGet("Pod", name);
  const conditions = [{ type: "Ready", status: "True" }];
  await house.setStatus(pod, { podIP, podIPs: [{ ip: podIP }], phase: "Running", conditions });
  return pod;
}

/** Creates the Pod object through which the operator finds an `ApiPod`. */
export function putApiPod(
  house: OperatorHouse,
  port: number,
  name = "demo-api-1",
): Promise<KubernetesObject> {
  const podLabels = { [labels.deployment]: "demo", [labels.component]: "api" };
  return putPod(
    house,
    name,
    podLabels,
    { name: "api", ports: [{ name: "http", containerPort: port }] },
    "127.0.0.1",
  );
}
