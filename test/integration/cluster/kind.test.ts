/** When `make up` takes kind, and what it then tells kind to do; stand-ins take the place of kind and of the engines (`make test-kind` runs real ones). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clusterShell } from "../../support/cluster-shell.ts";

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), "svc-tts-kind-"));
});
afterEach(() => rmSync(cache, { recursive: true, force: true }));

/** Stand-ins for programs that answer, each telling what it was asked to do. */
const told = (...programs: string[]) =>
  programs
    .map((name) => `${name}() { echo "$FUNCNAME $*" >&2; }; export -f ${name};`)
    .concat('timeout() { shift; "$@"; };')
    .join(" ");
const absent = (...programs: string[]) => programs.map((name) => `${name}() { return 127; };`).join(" ");

const shell = (lines: string) =>
  clusterShell(cache, `source ./kind.sh; source ./target.sh; KERNEL_MODULES=/; ${lines}`);

test.each([
  ["kind, where it is installed and Docker answers", told("kind", "docker"), "kind"],
  ["kind, where it is installed and Podman answers", absent("docker") + told("kind", "podman"), "kind"],
  ["the node, where no engine answers", told("kind") + absent("docker", "podman"), "node"],
  ["the node, where kind is not installed", `${told("docker")}command() { return 1; };`, "node"],
  [
    "the node that runs already",
    `${told("kind", "docker")}mkdir -p "$STATE"; echo x >"$KUBECONFIG_FILE";`,
    "node",
  ],
  ["what it is told to", `${told("kind", "docker")}SVC_TTS_CLUSTER=node;`, "node"],
])("make up takes %s", async (_what, given, chosen) => {
  const { code, said } = await shell(`${given} echo "chosen: $(chosen_cluster)" >&2`);
  expect({ code, said: said.split("\n").at(-2) }).toEqual({ code: 0, said: `chosen: ${chosen}` });
});

test("an unknown choice is named with what there is", async () => {
  const { code, said } = await shell("SVC_TTS_CLUSTER=minikube; chosen_cluster");
  expect(code).toBe(1);
  expect(said).toContain("SVC_TTS_CLUSTER must be kind or node, not 'minikube'");
});

test("without an engine it says what to do", async () => {
  const { code, said } = await shell(`${told("kind")} ${absent("docker", "podman")} start_kind`);
  expect(code).toBe(1);
  expect(said).toMatch(/neither Docker nor Podman answers.*\n.*SVC_TTS_CLUSTER=node/);
});

test("Podman is not asked to mount a folder that this machine lacks", async () => {
  const { code, said } = await shell(
    `${absent("docker")} ${told("kind", "podman")} KERNEL_MODULES=/absent; start_kind`,
  );
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringMatching(/kind mounts \/absent.*\n.*mkdir \/absent/),
  });
});

test("make down forgets no cluster that it cannot ask about", async () => {
  const { code, said } = await shell(
    `${told("kind")} ${absent("docker", "podman")} mkdir "$CACHE/kind"; trap 'ls "$CACHE" >&2' EXIT; stop_kind`,
  );
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringMatching(/^error: neither Docker nor Podman.*\n(.*\n)*kind\n$/),
  });
});

test("kind makes a cluster, offers made-up GPUs, takes the images and is gone after make down", async () => {
  const { code, said } = await shell(
    `${absent("docker")} ${told("podman", "kubectl")}
     kind() { echo "$KIND_EXPERIMENTAL_PROVIDER: kind $*" >>"$CACHE/asked"; if [ "$1 $2" = "get clusters" ] && [ -e "$CACHE/kind/made" ]; then echo svc-tts; fi
       if [ "$1 $2" = "create cluster" ]; then touch "$CACHE/kind/made"; fi; }
     SVC_TTS_KIND_IMAGE=localhost/node:1; start_kind; start_kind; load_into_kind /images/server.tar; stop_kind; cat "$CACHE/asked" >&2; ls "$CACHE" >&2`,
  );
  expect(code).toBe(0);
  const asked = said
    .split("\n")
    .filter((line) => line.startsWith("podman: kind") && !line.includes("get clusters"));
  const kubeconfig = `--kubeconfig ${cache}/kind/kubeconfig`;
  expect(asked).toEqual([
    expect.stringMatching(
      /^podman: kind create cluster --name svc-tts --config .*\/config\/kind\.yaml .* --image localhost\/node:1 /,
    ),
    `podman: kind export kubeconfig --name svc-tts ${kubeconfig}`,
    "podman: kind load image-archive /images/server.tar --name svc-tts",
    `podman: kind delete cluster --name svc-tts ${kubeconfig}`,
  ]);
  expect(said.trimEnd().split("\n").at(-1)).toBe("asked");
});
