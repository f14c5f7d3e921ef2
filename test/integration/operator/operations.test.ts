/**
 * Runs commands of the how-to guides with a real API server and a running operator. The commands need no
 * running pods.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeAll, beforeEach, expect, inject, it } from "vitest";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

const root = join(import.meta.dirname, "../../..");
const guides = ["install", "upgrade", "back-up", "rotate-credentials"].map(
  (name) => `docs/how-to/${name}.md`,
);
const address = inject("controlPlane");

let house: OperatorHouse;
let folder: string;
let commands: string[];

beforeAll(async () => {
  const text = (await Promise.all(guides.map((guide) => readFile(join(root, guide), "utf8")))).join("\n");
  const blocks = text.matchAll(/^```sh\n(.*?)^```/gms);
  commands = [...blocks].flatMap(([, block = ""]) => block.trim().split("\n"));
});

useOperatorHouse((opened) => {
  house = opened;
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-operations-"));
});

afterEach(() => rm(folder, { recursive: true }));

/** Runs the command of the guides that starts with the text, in the namespace of the test. */
async function follow(beginning: string, change = (command: string) => command): Promise<string> {
  const [command = "", ...more] = commands.filter((line) => line.startsWith(beginning));
  expect([command, ...more], `${guides.join(", ")} must have one command "${beginning}"`).toHaveLength(1);
  const here = change(command.replaceAll("-n speech", `-n ${house.namespace}`));
  const env = {
    PATH: [address.binDirectory, process.env.PATH].join(delimiter),
    KUBECONFIG: address.kubeconfigPath,
  };
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", here], {
    cwd: folder,
    env,
  });
  return stdout;
}

const inNamespace = (command: string) => command.replace("--all-namespaces", `-n ${house.namespace}`);

it("the commands of the backup guide restore all objects after their deletion", async () => {
  await house.putLicense(await house.issuer.issue(), "tts-license");
  await house.putLicense("unused", "tts-keys");
  const spec = { license: { secretRef: { name: "tts-license" } } };
  await house.putDeployment(spec);
  await house.untilThere("Deployment", "demo-mist");
  const before = await house.deployment();
  await follow("kubectl get ttsd --all-namespaces -o yaml", inNamespace);
  await follow("kubectl -n speech get secret");
  await follow("kubectl -n speech delete ttsd");
  for (const name of ["tts-license", "tts-keys"]) await house.remove("Secret", name);
  await house.untilGone("Deployment", "demo-api");

  for (const file of ["secrets-speech.yaml", "ttsd.yaml"])
    await house.kubectl("apply", "-f", join(folder, file));
  await house.serve("demo-api", "demo-mist");
  await house.untilReady();
  expect((await house.deployment()).spec).toEqual(before.spec);
});

it("the commands for credentials renew the license and rotate the internal token without a restart", async () => {
  await house.putLicense("expired", "tts-license");
  await house.putDeployment({ license: { secretRef: { name: "tts-license" } } });
  await house.untilCondition("LicenseValid", /^False/);
  await writeFile(join(folder, "license.jwt"), await house.issuer.issue());
  await follow("kubectl -n speech create secret generic tts-license");
  await house.untilCondition("LicenseValid", /^True/);
  await follow("kubectl -n speech annotate ttsd demo");
  const tokenData = async () => (await house.mustGet("Secret", "demo-token")).data as Record<string, string>;
  await house.until(async () => {
    const { accepted: list = "" } = await tokenData();
    return Buffer.from(list, "base64").toString().trim().split("\n").length === 2;
  }, "a second token");
});

it("the commands of the upgrade guide transfer the CRDs to a release", async () => {
  const asDryRun = (command: string) => `${command} --dry-run=server`;
  expect(await follow("kubectl annotate crd", asDryRun)).toContain("ttsdeployments.tts.svc.dev annotate");
  expect(await follow("kubectl label crd", asDryRun)).toContain("ttsmodelpools.tts.svc.dev labeled");
});
