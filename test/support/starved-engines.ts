/** Uses up its file descriptors, starts what a tier starts, and prints as JSON what each says; it lives to the end. */
import { closeSync, openSync } from "node:fs";
import { systemClock } from "../../server/clock.ts";
import { EngineProcess } from "../../server/engine/engine-process.ts";
import { SupervisedServer } from "../../server/engine/generator/server.ts";
import { VllmProcess } from "../../server/engine/generator/vllm-process.ts";
import { GpuLoad } from "../../server/telemetry/gpu-load.ts";

const quiet = { info: () => undefined, warn: () => undefined };
const vllm = { program: "true", args: [], environment: {} };

function takeAllDescriptors(): number[] {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    return taken;
  }
}

const taken = takeAllDescriptors();
const gpuLoad = new GpuLoad(quiet, systemClock);
const said = await Promise.all([
  EngineProcess.start({ file: "engine.ts" }).catch(String),
  new VllmProcess(vllm, quiet).ended,
  SupervisedServer.open({
    ...vllm,
    port: undefined,
    apiKey: "key",
    proof: async () => true,
    log: quiet,
    lookMs: 1,
    proofMs: 1,
    startMs: 1,
  }).catch(String),
]);
gpuLoad.close();
for (const descriptor of taken) closeSync(descriptor);
process.stdout.write(JSON.stringify(said));
