/**
 * Tests the scripts of test/cluster: the messages of `make up` on a machine without the requirements, the
 * selection of kind, and the arguments that kind receives. No cluster is started: scripts replace kind and
 * the container engines (`make test-kind` runs real ones).
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
 * Runs these lines in a shell that has sourced lib.sh.
 * @param prefix a command that starts the shell, such as `unshare`.
 * @returns the exit status and the output
 */
function shell(lines: string, prefix: readonly string[] = []): Promise<{ code: number; said: string }> {
  const script = `set -euo pipefail; cd ${scripts}; source ./lib.sh; source ./state.sh; ${lines}`;
  const [command = "", ...rest] = [...prefix, "bash", "-c", script];
  return new Promise((resolve) => {
    execFile(command, rest, { env: { ...process.env, SVC_TTS_CACHE: cache } }, (error, _stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), said: stderr });
    });
  });
}

const preflight = (lines: string, prefix: readonly string[] = []) =>
  shell(`source ./preflight.sh; ${lines}`, prefix);
const kind = (lines: string) => shell(`source ./kind.sh; source ./target.sh; KERNEL_MODULES=/; ${lines}`);

/** A separate network namespace, so that a test can remove a route without affecting this machine. */
const ownNetwork = ["unshare", "--map-root-user", "--net"];

test("an unprivileged user gets an error that says what to do", async () => {
  const { code, said } = await preflight("id() { echo 1000; }; need_linux_root");
  expect(code).toBe(1);
  expect(said).toMatch(/needs root.*\n.*sudo -E make up.*KUBECONFIG.*make run/);
});

test("missing disk space is reported with the folder, the required and the free space", async () => {
  const { code, said } = await preflight('need_space "$STATE" 1073741824 "the cluster"');
  expect(code).toBe(1);
  expect(said).toContain("the cluster needs about 1048576 GB under");
  expect(said).toMatch(/and \d+\.\d GB are free\n.*SVC_TTS_CACHE/);
});

test.each(["10.250.0.7/24", "10.96.3.1/24", "10.244.0.1/16"])(
  "an address range that is taken (%s) is named with the route that takes it",
  async (address) => {
    const { code, said } = await preflight(
      `ip link add vpn0 type veth peer name vpn1; ip link set vpn0 up; ip link set vpn1 up; ip addr add ${address} dev vpn0
       for range in "$NODE_RANGE" "$SERVICE_RANGE" "$POD_RANGE"; do need_free_range "$range"; done`,
      ownNetwork,
    );
    expect(code).toBe(1);
    expect(said).toMatch(
      /the address range 10\.(250\.0\.0\/24|96\.0\.0\/16|244\.0\.0\/16) is taken.*dev vpn0/,
    );
  },
);

test("a reused namespace number does not make a process part of the cluster", async () => {
  const { code, said } = await preflight(
    'mkdir -p "$RUN"; readlink /proc/self/ns/mnt >"$RUN/namespace"; cluster_processes >&2',
  );
  expect({ code, said }).toEqual({ code: 0, said: "" });
});

test("a process that sees the folders of the cluster in its namespace is part of the cluster", async () => {
  const { code, said } = await preflight(
    `mkdir -p "$RUN" "$STATE/private/var/lib/kubelet"
     unshare --map-root-user --mount bash -c 'mount -t tmpfs none /var/lib && mkdir /var/lib/kubelet && mount --bind "$0" /var/lib/kubelet &&
       echo ready && exec sleep 20' "$STATE/private/var/lib/kubelet" >"$RUN/out" & member=$!
     until [ -s "$RUN/out" ]; do sleep 0.05; done
     readlink "/proc/$member/ns/mnt" >"$RUN/namespace"
     found=$(cluster_processes); kill "$member"
     [ "$found" = "$member" ] || echo "found $found, not $member" >&2`,
  );
  expect({ code, said }).toEqual({ code: 0, said: "" });
});

test("a relative cache path is the same folder in every working directory", async () => {
  const { said } = await preflight("echo $STATE >&2", ["env", "SVC_TTS_CACHE=here"]);
  expect(said).toMatch(/^\/.*\/here\/cluster\n$/);
});

test("an existing cluster is checked before the cache is created", async () => {
  const { said } = await preflight(
    `source ./kind.sh; source ./target.sh; kubectl() { echo "no route" >&2; return 1; }; helm() { :; }; KUBECONFIG=/elsewhere; choose_target`,
    ["env", `SVC_TTS_CACHE=${join(cache, "new")}`],
  );
  expect(said).toContain("no route");
  expect(said).toContain("does not answer");
});

test("memory.sh prints the memory of each container without its reclaimable cache", async () => {
  const { code, said } = await preflight(
    `kubectl() { case $1 in get) echo "demo api-1 api" ;; *) printf '90000000\\ninactive_file 4000000\\n' ;; esac; }
     export -f kubectl; ./memory.sh | tr -s ' ' >&2`,
  );
  expect({ code, said }).toEqual({ code: 0, said: "demo/api-1 api 86 MB\n" });
});

test("a machine with free address ranges is accepted", async () => {
  const { code, said } = await preflight('need_free_range "$POD_RANGE"', ownNetwork);
  expect({ code, said }).toEqual({ code: 0, said: "" });
});

test("leftovers are listed in one line each, and the command fails", async () => {
  const { code, said } = await preflight(
    'ip link add svc-tts0 type veth peer name svc-tts1; mkdir -p "$STATE/etcd"; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(code).toBe(1);
  expect(said).toMatch(/^link svc-tts0/m);
  expect(said).toContain(`file ${cache}/cluster/etcd\n`);
});

test("files of another container engine are not leftovers of the cluster", async () => {
  const { said } = await preflight(
    'nft add table ip cni_hostport; nft add table ip kube-proxy; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(said).toContain("nftables table ip kube-proxy");
  expect(said).not.toContain("cni");
});

test("the build without a Go toolchain says how to install one", async () => {
  const { code, said } = await preflight(
    'PATH=/usr/bin:/bin; command() { return 1; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(said).toMatch(/Go is not installed.*\n.*install Go 1\.26/);
});

test("the build with an old Go version names both versions", async () => {
  const { code, said } = await preflight(
    'go() { echo go1.19.8; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(said).toContain("go1.19.8, and 1.26 is needed");
});

/** Creates programs that print their arguments. */
const withCommands = (...programs: string[]) =>
  programs
    .map((name) => `${name}() { echo "$FUNCNAME $*" >&2; }; export -f ${name};`)
    .concat('timeout() { shift; "$@"; };')
    .join(" ");
const absent = (...programs: string[]) => programs.map((name) => `${name}() { return 127; };`).join(" ");

test.each([
  ["kind, where it is installed and Docker answers", withCommands("kind", "docker"), "kind"],
  [
    "kind, where it is installed and Podman answers",
    absent("docker") + withCommands("kind", "podman"),
    "kind",
  ],
  ["the node, where no engine answers", withCommands("kind") + absent("docker", "podman"), "node"],
  ["the node, where kind is not installed", `${withCommands("docker")}command() { return 1; };`, "node"],
  [
    "the node that runs already",
    `${withCommands("kind", "docker")}mkdir -p "$STATE"; echo x >"$KUBECONFIG_FILE";`,
    "node",
  ],
  ["the configured tool", `${withCommands("kind", "docker")}SVC_TTS_CLUSTER=node;`, "node"],
])("make up uses %s", async (_what, given, chosen) => {
  const { code, said } = await kind(`${given} echo "chosen: $(chosen_cluster)" >&2`);
  expect({ code, said: said.split("\n").at(-2) }).toEqual({ code: 0, said: `chosen: ${chosen}` });
});

test("an unknown choice is reported with the possible ones", async () => {
  const { code, said } = await kind("SVC_TTS_CLUSTER=minikube; chosen_cluster");
  expect(code).toBe(1);
  expect(said).toContain("SVC_TTS_CLUSTER must be kind or node, not 'minikube'");
});

test("a missing container engine is reported with the remedy", async () => {
  const { code, said } = await kind(`${withCommands("kind")} ${absent("docker", "podman")} start_kind`);
  expect(code).toBe(1);
  expect(said).toMatch(/neither Docker nor Podman answers.*\n.*SVC_TTS_CLUSTER=node/);
});

test("Podman does not mount a folder that does not exist", async () => {
  const { code, said } = await kind(
    `${absent("docker")} ${withCommands("kind", "podman")} KERNEL_MODULES=/absent; start_kind`,
  );
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringMatching(/kind mounts \/absent.*\n.*mkdir \/absent/),
  });
});

test("make down keeps the record of a cluster that it cannot query", async () => {
  const { code, said } = await kind(
    `${withCommands("kind")} ${absent("docker", "podman")} mkdir "$CACHE/kind"; trap 'ls "$CACHE" >&2' EXIT; stop_kind`,
  );
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringMatching(/^error: neither Docker nor Podman.*\n(.*\n)*kind\n$/),
  });
});

test("kind creates a cluster with fake GPUs and the images, and make down removes it", async () => {
  const { code, said } = await kind(
    `${absent("docker")} ${withCommands("podman", "kubectl")}
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

test.each([
  ["Ready True Serving\\nStalled False Settled\\nReconciling False Settled", "every condition is as expected"],
  [
    "Ready False RollingOut\\nReconciling True RollingOut\\nStalled True NoGpu\\nLicenseValid Unknown Unconfirmed\\nApiReady True Serving",
    "Ready=False (RollingOut) Stalled=True (NoGpu) LicenseValid=Unknown (Unconfirmed)",
  ],
  ["", "no status yet"],
])("make up prints only the conditions that are not as expected: %s", async (conditions, line) => {
  const { said } = await shell(
    `source ./speak.sh; kubectl() { printf '%b' '${conditions}'; }; unexpected_conditions >&2`,
  );
  expect(said.trim()).toBe(line);
});
