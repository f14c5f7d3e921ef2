import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { leasePort } from "../../../test/support/port-lease.ts";
import { pythonWith } from "../../../test/support/python.ts";
import { onnxRuntimeOf } from "../common/servers-in-turn.ts";

/**
 * Piper's packages (GPL-3.0). These packages are installed only for measurements, and run in a separate
 * process.
 */
const packages = ["piper-tts==1.8.0", "flask==3.1.3"];
const readyWithinMs = 60_000;

export interface PiperServer {
  readonly url: string;
  /** The version of ONNX Runtime that the server uses. */
  readonly runtime: string;
  stop(): Promise<void>;
}

/**
 * Starts Piper's HTTP server with one model, as its documentation describes. `runtime` is the version of ONNX
 * Runtime. The default is the newest version at the first installation of the packages.
 */
export async function startPiper(model: string, runtime?: string): Promise<PiperServer> {
  const python = await pythonWith([
    ...packages,
    ...(runtime === undefined ? [] : [`onnxruntime==${runtime}`]),
  ]);
  const port = await leasePort();
  const child = spawn(
    python,
    ["-m", "piper.http_server", "--model", model, "--host", "127.0.0.1", "--port", String(port)],
    { stdio: "ignore" },
  );
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await untilUp(child, url);
    return { url, runtime: onnxRuntimeOf(python), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilUp(child: ChildProcess, url: string): Promise<void> {
  const until = performance.now() + readyWithinMs;
  while (performance.now() < until) {
    if (child.exitCode !== null) throw new Error(`Piper's server ended with exit code ${child.exitCode}`);
    const up = await fetch(`${url}/voices`).then(
      ({ ok }) => ok,
      () => false, // The server does not listen yet.
    );
    if (up) return;
    await sleep(100);
  }
  throw new Error("Piper's server did not start in time");
}
