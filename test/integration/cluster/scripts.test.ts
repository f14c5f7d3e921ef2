/**
 * Tests the scripts of test/cluster: the messages of `make up` on a machine without the requirements, the
 * selection of kind, and the arguments that kind receives. The tests start no cluster: scripts replace kind
 * and the container engines. `make test-kind` runs the real programs.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const scripts = join(import.meta.dirname, "../../cluster");
let cache: string;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), "svc-tts-scripts-"));
});
afterEach(() => rmSync(cache, { recursive: true, force: true }));

/**
 * Runs the lines in a shell that has sourced lib.sh.
 * @param prefix a command that starts the shell, such as `unshare`
 * @returns the exit status and the output
 */
function shell(lines: string, prefix: readonly string[] = []): Promise<{ code: number; output: string }> {
  const script = `set -euo pipefail; cd ${scripts}; source ./lib.sh; source ./state.sh; ${lines}`;
  const [command = "", ...rest] = [...prefix, "bash", "-c", script];
  return new Promise((resolve) => {
    execFile(command, rest, { env: { ...process.env, SVC_TTS_CACHE: cache } }, (error, _stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stderr });
    });
  });
}

const preflight = (lines: string, prefix: readonly string[] = []) =>
  shell(`source ./preflight.sh; ${lines}`, prefix);
const kind = (lines: string) => shell(`source ./kind.sh; source ./target.sh; KERNEL_MODULES=/; ${lines}`);

/**
 * Runs a command in a separate network namespace, so that a test does not affect the network of the machine.
 */
const ownNetwork = ["unshare", "--map-root-user", "--net"];

test("make up without root fails with a message that names the alternatives", async () => {
  const { code, output } = await preflight("id() { echo 1000; }; need_linux_root");
  expect(code).toBe(1);
  expect(output).toMatch(/needs root.*\n.*sudo -E make up.*KUBECONFIG.*make run/);
});

test("the error about missing disk space names the folder, the required space and the free space", async () => {
  const { code, output } = await preflight('need_space "$STATE" 1073741824 "the cluster"');
  expect(code).toBe(1);
  expect(output).toContain("the cluster needs about 1048576 GB under");
  expect(output).toMatch(/and \d+\.\d GB are free\n.*SVC_TTS_CACHE/);
});

test.each(["10.250.0.7/24", "10.96.3.1/24", "10.244.0.1/16"])(
  "the error about an address range in use (%s) names the range and the route",
  async (address) => {
    const { code, output } = await preflight(
      `ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; ip addr add ${address} dev vpn0
       for range in "$NODE_RANGE" "$SERVICE_RANGE" "$POD_RANGE"; do need_free_range "$range"; done`,
      ownNetwork,
    );
    expect(code).toBe(1);
    expect(output).toMatch(
      /the address range 10\.(250\.0\.0\/24|96\.0\.0\/16|244\.0\.0\/16) is taken.*dev vpn0/,
    );
  },
);

test("a reused namespace number does not make a process part of the cluster", async () => {
  const { code, output } = await preflight(
    'mkdir -p "$RUN"; readlink /proc/self/ns/mnt >"$RUN/namespace"; cluster_processes >&2',
  );
  expect({ code, output }).toEqual({ code: 0, output: "" });
});

test("a process with the folders of the cluster in its mount namespace is part of the cluster", async () => {
  const { code, output } = await preflight(
    `mkdir -p "$RUN" "$STATE/private/var/lib/kubelet"
     unshare --map-root-user --mount bash -c 'mount -t tmpfs none /var/lib && mkdir /var/lib/kubelet && mount --bind "$0" /var/lib/kubelet &&
       echo ready && exec sleep 20' "$STATE/private/var/lib/kubelet" >"$RUN/out" & member=$!
     until [ -s "$RUN/out" ]; do sleep 0.05; done
     readlink "/proc/$member/ns/mnt" >"$RUN/namespace"
     found=$(cluster_processes); kill "$member"
     [ "$found" = "$member" ] || echo "found $found, not $member" >&2`,
  );
  expect({ code, output }).toEqual({ code: 0, output: "" });
});

test("a relative cache path is made absolute", async () => {
  const { output } = await preflight("echo $STATE >&2", ["env", "SVC_TTS_CACHE=here"]);
  expect(output).toMatch(/^\/.*\/here\/cluster\n$/);
});

test("make up checks an existing cluster before it creates the cache", async () => {
  const { output } = await preflight(
    `source ./kind.sh; source ./target.sh; kubectl() { echo "no route" >&2; return 1; }; helm() { :; }; KUBECONFIG=/elsewhere; choose_target`,
    ["env", `SVC_TTS_CACHE=${join(cache, "new")}`],
  );
  expect(output).toContain("no route");
  expect(output).toContain("does not answer");
});

test("memory.sh prints the memory of each container without its reclaimable cache", async () => {
  const { code, output } = await preflight(
    `kubectl() { case $1 in get) echo "demo api-1 api" ;; *) printf '90000000\\ninactive_file 4000000\\n' ;; esac; }
     export -f kubectl; ./memory.sh | tr -s ' ' >&2`,
  );
  expect({ code, output }).toEqual({ code: 0, output: "demo/api-1 api 86 MB\n" });
});

test("a machine with free address ranges is accepted", async () => {
  const { code, output } = await preflight('need_free_range "$POD_RANGE"', ownNetwork);
  expect({ code, output }).toEqual({ code: 0, output: "" });
});

test("leftovers.sh prints each leftover on one line, and fails", async () => {
  const { code, output } = await preflight(
    'ip link add svc-tts0 type veth peer name svc-tts1; mkdir -p "$STATE/etcd"; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(code).toBe(1);
  expect(output).toMatch(/^link svc-tts0/m);
  expect(output).toContain(`file ${cache}/cluster/etcd\n`);
});

test("leftovers.sh ignores the nftables tables of another container engine", async () => {
  const { output } = await preflight(
    'nft add table ip cni_hostport; nft add table ip kube-proxy; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(output).toContain("nftables table ip kube-proxy");
  expect(output).not.toContain("cni");
});

test("the error about a missing Go toolchain says how to install one", async () => {
  const { code, output } = await preflight(
    'PATH=/usr/bin:/bin; command() { return 1; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(output).toMatch(/Go is not installed.*\n.*install Go 1\.26/);
});

test("the error about an old Go version names the installed and the required version", async () => {
  const { code, output } = await preflight(
    'go() { echo go1.19.8; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(output).toContain("go1.19.8, and 1.26 is needed");
});

/** Returns shell functions that replace the programs and print their arguments. */
const withCommands = (...programs: string[]) =>
  programs
    .map((name) => `${name}() { echo "$FUNCNAME $*" >&2; }; export -f ${name};`)
    .concat('timeout() { shift; "$@"; };')
    .join(" ");
const absent = (...programs: string[]) => programs.map((name) => `${name}() { return 127; };`).join(" ");

test.each([
  ["kind if kind is installed and Docker responds", withCommands("kind", "docker"), "kind"],
  [
    "kind if kind is installed and Podman responds",
    absent("docker") + withCommands("kind", "podman"),
    "kind",
  ],
  ["the node if no container engine responds", withCommands("kind") + absent("docker", "podman"), "node"],
  ["the node if kind is not installed", `${withCommands("docker")}command() { return 1; };`, "node"],
  [
    "a node that already runs",
    `${withCommands("kind", "docker")}mkdir -p "$STATE"; echo x >"$KUBECONFIG_FILE";`,
    "node",
  ],
  ["the choice of SVC_TTS_CLUSTER", `${withCommands("kind", "docker")}SVC_TTS_CLUSTER=node;`, "node"],
])("make up uses %s", async (_what, given, chosen) => {
  const { code, output } = await kind(`${given} echo "chosen: $(chosen_cluster)" >&2`);
  expect({ code, output: output.split("\n").at(-2) }).toEqual({ code: 0, output: `chosen: ${chosen}` });
});

test("the error about an unknown SVC_TTS_CLUSTER names the allowed values", async () => {
  const { code, output } = await kind("SVC_TTS_CLUSTER=minikube; chosen_cluster");
  expect(code).toBe(1);
  expect(output).toContain("SVC_TTS_CLUSTER must be kind or node, not 'minikube'");
});

test("the error about a missing container engine says what to do", async () => {
  const { code, output } = await kind(`${withCommands("kind")} ${absent("docker", "podman")} start_kind`);
  expect(code).toBe(1);
  expect(output).toMatch(/neither Docker nor Podman answers.*\n.*SVC_TTS_CLUSTER=node/);
});

test("make up with Podman fails if the folder of the kernel modules does not exist", async () => {
  const { code, output } = await kind(
    `${absent("docker")} ${withCommands("kind", "podman")} KERNEL_MODULES=/absent; start_kind`,
  );
  expect({ code, output }).toEqual({
    code: 1,
    output: expect.stringMatching(/kind mounts \/absent.*\n.*mkdir \/absent/),
  });
});

test("make down keeps the state of a cluster if no container engine responds", async () => {
  const { code, output } = await kind(
    `${withCommands("kind")} ${absent("docker", "podman")} mkdir "$CACHE/kind"; trap 'ls "$CACHE" >&2' EXIT; stop_kind`,
  );
  expect({ code, output }).toEqual({
    code: 1,
    output: expect.stringMatching(/^error: neither Docker nor Podman.*\n(.*\n)*kind\n$/),
  });
});

test("kind creates a cluster with fake GPUs and the images, and make down removes it", async () => {
  const { code, output } = await kind(
    `${absent("docker")} ${withCommands("podman", "kubectl")}
     kind() { echo "$KIND_EXPERIMENTAL_PROVIDER: kind $*" >>"$CACHE/asked"; if [ "$1 $2" = "get clusters" ] && [ -e "$CACHE/kind/made" ]; then echo svc-tts; fi
       if [ "$1 $2" = "create cluster" ]; then touch "$CACHE/kind/made"; fi; }
     SVC_TTS_KIND_IMAGE=localhost/node:1; start_kind; start_kind; load_into_kind /images/server.tar; stop_kind; cat "$CACHE/asked" >&2; ls "$CACHE" >&2`,
  );
  expect(code).toBe(0);
  const kindCalls = output
    .split("\n")
    .filter((line) => line.startsWith("podman: kind") && !line.includes("get clusters"));
  const kubeconfig = `--kubeconfig ${cache}/kind/kubeconfig`;
  expect(kindCalls).toEqual([
    expect.stringMatching(
      /^podman: kind create cluster --name svc-tts --config .*\/config\/kind\.yaml .* --image localhost\/node:1 /,
    ),
    `podman: kind export kubeconfig --name svc-tts ${kubeconfig}`,
    "podman: kind load image-archive /images/server.tar --name svc-tts",
    `podman: kind delete cluster --name svc-tts ${kubeconfig}`,
  ]);
  expect(output.trimEnd().split("\n").at(-1)).toBe("asked");
});

test.each([
  [
    "Ready True Serving\\nStalled False Settled\\nReconciling False Settled",
    "every condition is as expected",
  ],
  [
    "Ready False RollingOut\\nReconciling True RollingOut\\nStalled True NoGpu\\nLicenseValid Unknown Unconfirmed\\nApiReady True Serving",
    "Ready=False (RollingOut) Stalled=True (NoGpu) LicenseValid=Unknown (Unconfirmed)",
  ],
  ["", "no status yet"],
])("make up prints only the conditions that are not as expected: %s", async (conditions, line) => {
  const { output } = await shell(
    `source ./speak.sh; kubectl() { printf '%b' '${conditions}'; }; unexpected_conditions >&2`,
  );
  expect(output.trim()).toBe(line);
});
