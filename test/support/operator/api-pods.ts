import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ApiLoad, loadPath, loadType, type PoolLoad } from "../../../config/contract/load.ts";
import { labels } from "../../../config/contract/names.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { OperatorHouse } from "./operator-house.ts";

/** The load endpoint of an API pod on a real socket. It reports the load that a test sets. */
export class ApiPod implements AsyncDisposable {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #readers: Set<(line: string) => void>;
  #load: ApiLoad;
  /** Credentials that clients of the route sent. */
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
      const tell = (line: string) => void response.write(line);
      tell(pod.#line());
      readers.add(tell);
      response.once("close", () => readers.delete(tell));
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

  /** Sets the demand of a pool, which the pod reports. */
  tell(pool: string, load: Partial<PoolLoad>): void {
    const whole: PoolLoad = { streams: 0, waiting: 0, replicas: {}, ...load };
    this.#load = { ...this.#load, pools: { ...this.#load.pools, [pool]: whole } };
    for (const tell of this.#readers) tell(this.#line());
  }

  /** Records a response of the license's issuer, which the pod then reports. */
  hear(licenseAnswer: string): void {
    this.#load = { ...this.#load, licenseAnswer };
    for (const tell of this.#readers) tell(this.#line());
  }

  /** Closes its connections. New ones are accepted. */
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

/** A running pod, with the status that scheduler and kubelet write. */
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

/** The Pod object through which the operator finds one of these API pods. */
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
