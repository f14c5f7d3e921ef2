import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GeneratorSettings } from "../../../server/engine/vllm/settings.ts";
import { leasePort } from "../port-lease.ts";
import type { Asked, Script } from "../scripted-vllm/main.ts";
import { TinyModelFolder } from "./model-folder.ts";

const main = fileURLToPath(new URL("../scripted-vllm/main.ts", import.meta.url));

/**
 * Settings that start the simulated vLLM (`scripted-vllm/main.ts`) with a tiny model, and requests to control
 * it.
 */
export class ScriptedVllm {
  readonly model: TinyModelFolder;
  readonly settings: GeneratorSettings;
  readonly #port: number;
  readonly #bin: string;

  private constructor(port: number, change: object) {
    this.#port = port;
    this.model = new TinyModelFolder(change);
    this.#bin = mkdtempSync(join(tmpdir(), "svc-tts-scripted-"));
    const program = join(this.#bin, "vllm");
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    chmodSync(program, 0o755);
    this.settings = {
      folder: this.model.path,
      server: { kind: "here", program, args: [], environment: {}, port, apiKey: undefined },
      startSeconds: 60,
      hangSeconds: 60,
      timesWithinMs: 60_000,
      capacity: 8,
      seed: undefined,
      codec: { providers: ["cpu"], processes: 1 },
    };
  }

  /** @param change the changed fields of the manifest */
  static async create(change: object = {}): Promise<ScriptedVllm> {
    return new ScriptedVllm(await leasePort(), change);
  }

  async script(script: Script): Promise<void> {
    await fetch(`${this.#url}/script`, { method: "POST", body: JSON.stringify(script) });
  }

  async asked(): Promise<Asked> {
    return (await (await fetch(`${this.#url}/asked`)).json()) as Asked;
  }

  delete(): void {
    this.model.delete();
    rmSync(this.#bin, { recursive: true });
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
}
