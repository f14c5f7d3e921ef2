/** What `make up` says on a machine that cannot carry a cluster; nothing is started here. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { clusterShell } from "../../support/cluster-shell.ts";

let cache: string;

beforeAll(() => {
  cache = mkdtempSync(join(tmpdir(), "svc-tts-preflight-"));
});
afterAll(() => rmSync(cache, { recursive: true, force: true }));

const shell = (lines: string, prefix: readonly string[] = []) =>
  clusterShell(cache, `source ./preflight.sh; ${lines}`, prefix);

/** A network of its own, so that a route can be taken without touching this machine's. */
const ownNetwork = ["unshare", "--map-root-user", "--net"];

test("a user who is not root is told so, and what to do instead", async () => {
  const { code, said } = await shell("id() { echo 1000; }; need_linux_root");
  expect(code).toBe(1);
  expect(said).toMatch(/needs root.*\n.*sudo -E make up.*KUBECONFIG.*make run/);
});

test("too little space is named with the folder, what is needed and what there is", async () => {
  const { code, said } = await shell('need_space "$STATE" 1073741824 "the cluster"');
  expect(code).toBe(1);
  expect(said).toContain("the cluster needs about 1048576 GB under");
  expect(said).toMatch(/and \d+\.\d GB are free\n.*SVC_TTS_CACHE/);
});

test.each(["10.250.0.7/24", "10.96.3.1/24", "10.244.0.1/16"])(
  "an address range that is taken (%s) is named with the route that takes it",
  async (address) => {
    const { code, said } = await shell(
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

test("a namespace number that somebody else has by now makes nobody a process of the cluster's", async () => {
  const { code, said } = await shell(
    'mkdir -p "$RUN"; readlink /proc/self/ns/mnt >"$RUN/namespace"; cluster_processes >&2',
  );
  expect({ code, said }).toEqual({ code: 0, said: "" });
});

test("who sees the cluster's own folders in its namespace is a process of the cluster's", async () => {
  const { code, said } = await shell(
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

test("a cache given by a relative path is the same folder from everywhere", async () => {
  const { said } = await shell("echo $STATE >&2", ["env", "SVC_TTS_CACHE=here"]);
  expect(said).toMatch(/^\/.*\/here\/cluster\n$/);
});

test("a cluster of one's own is asked before there is any cache", async () => {
  const { said } = await shell(
    `source ./kind.sh; source ./target.sh; kubectl() { echo "no route" >&2; return 1; }; helm() { :; }; KUBECONFIG=/elsewhere; choose_target`,
    ["env", `SVC_TTS_CACHE=${join(cache, "new")}`],
  );
  expect(said).toContain("no route");
  expect(said).toContain("does not answer");
});

test("memory.sh prints each container's memory less the cache that could be dropped", async () => {
  const { code, said } = await shell(
    `kubectl() { case $1 in get) echo "demo api-1 api" ;; *) printf '90000000\\ninactive_file 4000000\\n' ;; esac; }
     export -f kubectl; ./memory.sh | tr -s ' ' >&2`,
  );
  expect({ code, said }).toEqual({ code: 0, said: "demo/api-1 api 86 MB\n" });
});

test("a machine whose ranges are free passes", async () => {
  const { code, said } = await shell('need_free_range "$POD_RANGE"', ownNetwork);
  expect({ code, said }).toEqual({ code: 0, said: "" });
});

test("leftovers are listed, one a line, and fail", async () => {
  const { code, said } = await shell(
    'ip link add svc-tts0 type veth peer name svc-tts1; mkdir -p "$STATE/etcd"; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(code).toBe(1);
  expect(said).toMatch(/^link svc-tts0/m);
  expect(said).toContain(`file ${cache}/cluster/etcd\n`);
});

test("what another container engine keeps on this machine is no leftover of the cluster's", async () => {
  const { said } = await shell(
    'nft add table ip cni_hostport; nft add table ip kube-proxy; "$CLUSTER_DIR"/leftovers.sh >&2',
    ownNetwork,
  );
  expect(said).toContain("nftables table ip kube-proxy");
  expect(said).not.toContain("cni");
});

test("without a Go toolchain the build says how to get one", async () => {
  const { code, said } = await shell(
    'PATH=/usr/bin:/bin; command() { return 1; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(said).toMatch(/Go is not installed.*\n.*install Go 1\.26/);
});

test("with a Go that is too old the build names both versions", async () => {
  const { code, said } = await shell(
    'go() { echo go1.19.8; }; source <(sed -n "/^need_go()/,/^}/p" tools.sh); GO_MINOR=26; need_go',
  );
  expect(code).toBe(1);
  expect(said).toContain("go1.19.8, and 1.26 is needed");
});
