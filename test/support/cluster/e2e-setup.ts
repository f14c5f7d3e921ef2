/**
 * Sets up the cluster of the e2e suite: the cluster of `KUBECONFIG` if that is set, else the local one. The
 * local cluster is started unless it runs, and stopped again if this run started it. The operator is
 * installed from the working tree in both cases.
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
  /** The docker-archive of that image. */
  readonly operatorArchive: string;
  /** The private JWK of a license key that the operator trusts. */
  readonly signingKeyFile: string;
  /** The only node of test/cluster. Tests may change its device plugin and its processes. */
  readonly isLocal: boolean;
}

const localKubeconfig = join(cache, "cluster", "kubeconfig");

/** If a run has several projects, the first one sets up the cluster for all of them. */
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
  const wasUp = isLocal && isUp();
  await script("install.sh");
  if (isLocal) process.env.KUBECONFIG = localKubeconfig;
  process.env.PATH = [toolsFolder(), process.env.PATH].join(delimiter);
  const proxy = await startApiProxy();
  process.env[apiVariable] = proxy.url;
  return async () => {
    proxy.stop();
    if (isLocal && !wasUp) await script("down.sh");
  };
}

/** `down.sh` removes the file, so it shows whether a cluster runs. */
function isUp(): boolean {
  return existsSync(localKubeconfig);
}

/** kubectl and helm of the same version as the cluster. Built ones have priority over those of the machine. */
function toolsFolder(): string {
  return execFileSync(join(scripts, "tools.sh"), { encoding: "utf8" }).trim();
}

/** The output of images.sh: lines of `NAME=value`. */
function readImages(): Record<string, string> {
  const lines = readFileSync(join(cache, "images", "current.env"), "utf8").split("\n");
  return Object.fromEntries(
    lines.filter((line) => /^[A-Z_]+=/.test(line)).map((line) => line.split(/=(.*)/s, 2)),
  );
}

/** Runs a script of the cluster. The script prints its progress. */
function script(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // in a cluster of kind, tests must not change the processes of the node
    const env = { ...process.env, SVC_TTS_CLUSTER: "node" };
    const child = spawn(join(scripts, name), { stdio: ["ignore", "inherit", "inherit"], env });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`test/cluster/${name} ended with ${code}`)),
    );
  });
}
