/** Owns a generator, prints the ids of its processes (vLLM's first), and waits to be killed. */
import { GeneratorEngine } from "../../../../server/engine/generator/engine.ts";
import type { GeneratorSettings } from "../../../../server/engine/generator/settings.ts";
import { childrenWith } from "../../processes.ts";

const settings = JSON.parse(process.argv[2] ?? "null") as GeneratorSettings;
const log = { info: () => undefined, warn: () => undefined };
await GeneratorEngine.open({ ...settings, maxStreams: 2, host: "127.0.0.1", log });
console.log(JSON.stringify([...childrenWith("scripted-vllm/main.ts"), ...childrenWith("generator/main.ts")]));
