/** Installs KEDA on the local cluster with the manifests and roles of KEDA. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import { eventually } from "../eventually.ts";
import { giveNodeImage } from "./node-images.ts";
import { condition, Kubectl, type KubeObject, run } from "./real-cluster.ts";
import { mist, type World } from "./world.ts";

const execute = promisify(execFile);
const build = join(import.meta.dirname, "../../keda/build.sh");
/** One image contains the three programs of KEDA. */
const image = "svc-tts.local/keda:2.21.0";
const keda = new Kubectl("keda");

/**
 * Installs KEDA. Resolves when its Deployments are ready and the API server serves its metrics. `remove`
 * uninstalls KEDA.
 */
export async function installKeda(): Promise<{ readonly remove: () => Promise<void> }> {
  const folder = (await execute(build, { timeout: 3_600_000 })).stdout.trim();
  await giveNodeImage({ name: image, layer: join(folder, "bin"), config: { User: "65532" } });
  const { stdout } = await execute("kubectl", ["kustomize", join(folder, "config/default")], {
    maxBuffer: 64 * 1024 * 1024,
  });
  const manifests = parseAllDocuments(stdout).map((document) => document.toJS() as KubeObject);
  const kinds = textOf(manifests.filter(({ kind }) => kind === "CustomResourceDefinition"));
  const programs = textOf(manifests.filter(({ kind }) => kind !== "CustomResourceDefinition"));
  await kubectlOn(kinds + programs, "apply", "--server-side", "-f", "-");
  await keda.do("wait", "--for=condition=Available", "deployment", "--all", "--timeout=300s");
  const metricsApi = "apiservice/v1beta1.external.metrics.k8s.io";
  await keda.do("wait", "--for=condition=Available", metricsApi, "--timeout=300s");
  return { remove: () => removed(kinds, programs) };
}

function textOf(manifests: readonly KubeObject[]): string {
  return manifests.map((manifest) => `${stringify(withOurImage(manifest))}---\n`).join("");
}

/** Replaces the images of KEDA by the image that was imported into the node. */
function withOurImage(manifest: KubeObject): KubeObject {
  if (manifest.kind !== "Deployment") return manifest;
  for (const container of manifest.spec.template.spec.containers) {
    container.image = image;
    container.imagePullPolicy = "IfNotPresent";
  }
  return manifest;
}

async function removed(kinds: string, programs: string): Promise<void> {
  // KEDA must still run, because a CRD is deleted after its objects, and KEDA removes their finalizers.
  await kubectlOn(kinds, "delete", "--ignore-not-found", "--timeout=300s", "-f", "-");
  // An APIService without a server would block the deletion of every namespace.
  await keda.do("delete", "apiservice", "v1beta1.external.metrics.k8s.io");
  await kubectlOn(programs, "delete", "--ignore-not-found", "--timeout=300s", "-f", "-");
  await eventually("the namespace of KEDA is deleted", async () => {
    return (await keda.try("get", "namespace", "keda")).code !== 0;
  });
}

async function kubectlOn(text: string, ...words: string[]): Promise<void> {
  const ran = await run("kubectl", words, text);
  if (ran.code !== 0) throw new Error(`kubectl ${words.join(" ")}: ${ran.stderr.trim()}`);
}

/** Returns a mist pool that KEDA scales down within seconds, so that a test does not wait for minutes. */
export function kedaModel(scaling: object): object {
  const { replicas: _, ...model } = mist() as { replicas: number };
  const policies = [{ type: "Percent", value: 100, periodSeconds: 1 }];
  const behavior = { scaleDown: { stabilizationWindowSeconds: 8, policies } };
  return { ...model, scaling: { provider: "KEDA", behavior, ...scaling } };
}

/** Waits until KEDA has processed the ScaledObject of the pool, and the operator reports it. */
export async function kedaFollows(world: World, deployment: string): Promise<void> {
  const look = () => world.kubectl.get("scaledobject", `${deployment}-mist`);
  await eventually(
    "the ScaledObject is ready",
    async () => condition(await look(), "Ready")?.status === "True",
    { seen: async () => (await look())?.status },
  );
  const { reason, message } = await world.condition(deployment, "ScalingReady", "True");
  if (reason !== "Following") throw new Error(`ScalingReady is ${reason}: ${message}`);
}
