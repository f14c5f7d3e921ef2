/**
 * Runs the HorizontalPodAutoscaler controller of Kubernetes with the API server of the suite, and with an
 * adapter for one external metric.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Fault, FaultProxy, type ProxiedRequest } from "../operator/fault-proxy.ts";
import type { ControlPlaneAddress } from "./control-plane.ts";

const metricsRoot = "/apis/external.metrics.k8s.io/v1beta1/namespaces";

export interface MetricQuery {
  readonly namespace: string;
  readonly name: string;
  readonly selector: string;
}

export interface HpaController extends AsyncDisposable {
  /** The metric requests that the controller has sent. */
  readonly queries: readonly MetricQuery[];
}

/**
 * Runs the controller with an interval of one second. It connects to the API server through a proxy that
 * implements the external metrics API.
 *
 * @param value returns the current value of the metric, or undefined for status 404, as in a cluster without
 * the metric
 */
export async function startHpaController(
  address: ControlPlaneAddress,
  value: (query: MetricQuery) => number | undefined,
): Promise<HpaController> {
  const queries: MetricQuery[] = [];
  const proxy = await FaultProxy.start(address);
  proxy.rule = (request) => {
    const query = metricQuery(request);
    if (query === undefined) return undefined;
    queries.push(query);
    return answer(query, value(query));
  };
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-hpa-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, JSON.stringify(configFor(proxy.server)));
  const controller = spawn(
    "setpriv",
    [
      ...["--pdeathsig", "KILL", "--", join(address.binDirectory, "kube-controller-manager")],
      `--kubeconfig=${kubeconfig}`,
      "--controllers=horizontal-pod-autoscaler-controller",
      "--horizontal-pod-autoscaler-sync-period=1s",
      // The proxy reads watches line by line, so it needs JSON instead of protobuf.
      "--kube-api-content-type=application/json",
      "--leader-elect=false",
      "--secure-port=0",
    ],
    { stdio: "ignore" },
  );
  return {
    queries,
    async [Symbol.asyncDispose]() {
      const ended = once(controller, "exit");
      controller.kill("SIGKILL");
      await ended;
      await proxy[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

function metricQuery({ path, query }: ProxiedRequest): MetricQuery | undefined {
  if (!path.startsWith(`${metricsRoot}/`)) return undefined;
  const [namespace = "", name = ""] = path.slice(metricsRoot.length + 1).split("/");
  return { namespace, name, selector: query.get("labelSelector") ?? "" };
}

/** Returns a response with an ExternalMetricValueList. */
function answer({ name }: MetricQuery, value: number | undefined): Fault {
  if (value === undefined) return { kind: "answer", status: 404, body: { kind: "Status", code: 404 } };
  const item = {
    metricName: name,
    metricLabels: {},
    timestamp: new Date().toISOString(),
    value: String(value),
  };
  const body = {
    kind: "ExternalMetricValueList",
    apiVersion: "external.metrics.k8s.io/v1beta1",
    metadata: {},
    items: [item],
  };
  return { kind: "answer", status: 200, headers: { "content-type": "application/json" }, body };
}

function configFor(server: URL) {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "proxy", cluster: { server: server.origin } }],
    users: [{ name: "admin", user: {} }],
    contexts: [{ name: "test", context: { cluster: "proxy", user: "admin" } }],
    "current-context": "test",
  };
}
