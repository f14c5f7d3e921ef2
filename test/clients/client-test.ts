import { fileURLToPath } from "node:url";
import { voices } from "../../config/contract/voices.ts";
import { startTestApi, type TestApi } from "../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../support/server/scripted-model.ts";
import { type ClientProgram, startClientProgram } from "../support/sockets/client-program.ts";
import { scriptedSeconds, speakWords } from "../support/sockets/scripted-speech.ts";

export const sentences = ["One is here today.", "Two is more than that.", "Three ends the turn of it."];
export const wholeText = sentences.join(" ");
/** The pieces of a language model, which end anywhere. */
export const pieces: readonly string[] = wholeText.match(/.{1,5}/g) ?? [];
/** Hz that the clients ask for. */
export const rate = 24_000;

/** A published client and a server with a scripted model. */
export class ClientTest {
  readonly api: TestApi;
  readonly model: ScriptedModel;
  readonly #program: ClientProgram;

  private constructor(api: TestApi, model: ScriptedModel, program: ClientProgram) {
    this.api = api;
    this.model = model;
    this.#program = program;
  }

  /** @param program file in this folder. */
  static async start(packages: readonly string[], program: string): Promise<ClientTest> {
    const model = await startScriptedModel(speakWords);
    const api = await startTestApi(model.url, { voices });
    const file = fileURLToPath(new URL(program, import.meta.url));
    return new ClientTest(api, model, await startClientProgram(packages, file));
  }

  /** Forgets what was spoken. */
  reset(): void {
    this.model.calls.length = 0;
    this.model.script = speakWords;
  }

  /** Address of the sockets. */
  get url(): string {
    return this.api.url.replace("http", "ws");
  }

  ask<Answer>(order: object): Promise<Answer> {
    return this.#program.ask(order);
  }

  /** Everything that was spoken. */
  get spoken(): string {
    return this.model.calls.map(({ invocation }) => invocation.text).join(" ");
  }

  /** Samples of all of it, as the client gets them. */
  get samples(): number {
    return Math.round(this.model.calls.length * scriptedSeconds * rate);
  }

  /** Number of sockets on which it was spoken: the ids of their syntheses begin alike. */
  get sockets(): number {
    const ids = this.model.calls.map(({ headers }) => String(headers["x-request-id"]).split(".")[0]);
    return new Set(ids).size;
  }

  /** The environment of an example of the documentation. */
  get environment() {
    return { SVC_TTS_SOCKETS: `${this.url}/v1`, SVC_TTS_API_KEY: this.api.key };
  }

  async stop(): Promise<void> {
    await this.#program.stop();
    await this.api.stop();
    await this.model.close();
  }
}
