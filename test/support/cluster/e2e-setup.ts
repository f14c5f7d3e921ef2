/**
 * Sets up the cluster of the e2e suite. If `KUBECONFIG` is set, the suite uses that cluster. Otherwise it
 * uses the local cluster, starts it if it does not run, and stops it at the end if this run started it. In
 * both cases, the setup installs the operator from the working tree.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { apiVariable, startApiProxy } from "./api-reader.ts";

const cache = process.env.SVC_TTS_CACHE ?? join(homedir(), ".cache", "svc-tts");
const scripts = fileURLToPath(new URL("../../cluster", import.meta.url));

declare module "vitest" {
  interface ProvidedContext {
    readonly cluster: ClusterFacts;
  }
}

/** Facts about the cluster for the tests. */
export interface ClusterFacts {
  readonly serverImage: string;
  readonly operatorImage: string;
  /** The docker-archive of the operator image. */
  readonly operatorArchive: string;
  /** The private JWK of a license key that the operator trusts. */
  readonly signingKeyFile: string;
  /**
   * True for the cluster of test/cluster. Tests may change the device plugin and the processes of its node.
   */
  readonly isLocal: boolean;
}

const localKubeconfig = join(cache, "cluster", "kubeconfig");

/**
 * Vitest calls this function for each project of a run. The first call sets up the cluster for all projects.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isSetUp = process.env[apiVariable] !== undefined;
  const tearDown = isSetUp ? async () => undefined : await setUpCluster();
  const images = readImages();
  project.provide("cluster", {
    serverImage: images.SERVER_IMAGE ?? "",
    operatorImage: images.OPERATOR_IMAGE ?? "",
    operatorArchive: images.OPERATOR_ARCHIVE ?? "",
    signingKeyFile: join(cache, "dev", "private.jwk"),
    isLocal: process.env.KUBECONFIG === localKubeconfig,
  });
  return tearDown;
}

async function setUpCluster(): Promise<() => Promise<void>> {
  const isLocal = !process.env.KUBECONFIG;
  const ranBefore = isLocal && isRunning();
  await script("install.sh");
  if (isLocal) process.env.KUBECONFIG = localKubeconfig;
  process.env.PATH = [toolsFolder(), process.env.PATH].join(delimiter);
  const proxy = await startApiProxy();
  process.env[apiVariable] = proxy.url;
  return async () => {
    proxy.stop();
    if (isLocal && !ranBefore) await script("down.sh");
  };
}

/** Returns whether the local cluster runs. Its kubeconfig exists from `up.sh` until `down.sh`. */
function isRunning(): boolean {
  return existsSync(localKubeconfig);
}

/**
 * Returns the folder of kubectl and helm in the version of the cluster. It comes before the programs of the
 * machine.
 */
function toolsFolder(): string {
  return execFileSync(join(scripts, "tools.sh"), { encoding: "utf8" }).trim();
}

/** Reads the names of the images, which images.sh writes as lines of `NAME=value`. */
function readImages(): Record<string, string> {
  const lines = readFileSync(join(cache, "images", "current.env"), "utf8").split("\n");
  return Object.fromEntries(
    lines.filter((line) => /^[A-Z_]+=/.test(line)).map((line) => line.split(/=(.*)/s, 2)),
  );
}

/** Runs a script of test/cluster. The script prints its progress. */
function script(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // Tests need the cluster of kind `node`, because they change processes of the node.
    const env = { ...process.env, SVC_TTS_CLUSTER: "node" };
    const child = spawn(join(scripts, name), { stdio: ["ignore", "inherit", "inherit"], env });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0
        ? resolve()
        : reject(
            new Error(`test/cluster/${name} failed with exit code ${code}; its output explains the cause`),
          ),
    );
  });
}
