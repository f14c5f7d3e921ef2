import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { leasePort } from "../../../test/support/port-lease.ts";
import { pythonWith } from "../../../test/support/python.ts";
import { onnxRuntimeOf } from "../common/servers-in-turn.ts";

const packages = ["fastkokoro[cpu]==0.7.0", "onnxruntime==1.32.0"];
/** The time limit of the start. The server simplifies the graph before it listens. */
const readyWithinMs = 180_000;

export interface FastKokoro {
  readonly url: string;
  readonly pid: number;
  /** The version of ONNX Runtime that the server uses. */
  readonly runtime: string;
  stop(): Promise<void>;
}

/** Converts a voice of Kokoro (510 styles of 256 floats) into the archive that fastkokoro reads. */
const archive = `
import sys, numpy
numpy.savez(sys.argv[1], **{sys.argv[2]: numpy.fromfile(sys.argv[3], dtype=numpy.float32).reshape(510, 1, 256)})`;

/**
 * Starts fastkokoro with its default settings, and with the model file and one voice of an installed preset.
 * `folder` is the folder of the preset.
 */
export async function startFastKokoro(folder: string, voice: string): Promise<FastKokoro> {
  const python = await pythonWith(packages);
  const home = mkdtempSync(join(tmpdir(), "svc-tts-bench-"));
  const voices = join(home, "voices.npz");
  execFileSync(python, ["-c", archive, voices, voice, join(folder, `${voice}.bin`)]);
  const port = await leasePort();
  const child = spawn(join(dirname(python), "fastkokoro"), {
    env: {
      ...process.env,
      FASTKOKORO_HOST: "127.0.0.1",
      FASTKOKORO_PORT: String(port),
      FASTKOKORO_MODEL_PATH: join(folder, "model.onnx"),
      FASTKOKORO_VOICES_PATH: voices,
      FASTKOKORO_CACHE_DIR: home,
    },
    stdio: "ignore",
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(home, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    const until = performance.now() + readyWithinMs;
    while (!(await isUp(url))) {
      if (child.exitCode !== null) throw new Error(`fastkokoro ended with exit code ${child.exitCode}`);
      if (performance.now() > until) throw new Error("fastkokoro did not start in time");
      await sleep(200);
    }
    return { url, pid: child.pid ?? 0, runtime: onnxRuntimeOf(python), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function isUp(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false, // The server does not listen yet.
  );
}
