import { fileURLToPath } from "node:url";
import { voices } from "../../config/contract/voices.ts";
import { startTestApi, type TestApi } from "../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../support/server/scripted-model.ts";
import { type ClientProgram, startClientProgram } from "../support/sockets/client-program.ts";
import { scriptedSeconds, speakWords } from "../support/sockets/scripted-speech.ts";

export const sentences = ["One is here today.", "Two is more than that.", "Three ends the turn of it."];
export const wholeText = sentences.join(" ");
/** The text in pieces as a language model streams it: pieces end inside words and sentences. */
export const pieces: readonly string[] = wholeText.match(/.{1,5}/g) ?? [];
/** The sampling rate in Hz that the clients request. */
export const rate = 24_000;

/** A published client that is connected to an API tier with a scripted model. */
export class ClientTest {
  readonly api: TestApi;
  readonly model: ScriptedModel;
  readonly #program: ClientProgram;

  private constructor(api: TestApi, model: ScriptedModel, program: ClientProgram) {
    this.api = api;
    this.model = model;
    this.#program = program;
  }

  /** @param program the file in this folder that runs the client. */
  static async start(packages: readonly string[], program: string): Promise<ClientTest> {
    const model = await startScriptedModel(speakWords);
    const api = await startTestApi(model.url, { voices });
    const file = fileURLToPath(new URL(program, import.meta.url));
    return new ClientTest(api, model, await startClientProgram(packages, file));
  }

  /** Deletes the recorded invocations, and restores the default script. */
  reset(): void {
    this.model.calls.length = 0;
    this.model.script = speakWords;
  }

  /** The base URL of the sockets. */
  get url(): string {
    return this.api.url.replace("http", "ws");
  }

  ask<Answer>(order: object): Promise<Answer> {
    return this.#program.ask(order);
  }

  /** The text of all invocations. */
  get spoken(): string {
    return this.model.calls.map(({ invocation }) => invocation.text).join(" ");
  }

  /** The number of samples that the client should receive for all invocations. */
  get samples(): number {
    return Math.round(this.model.calls.length * scriptedSeconds * rate);
  }

  /** The number of sockets of all invocations. The request ids of one socket share a prefix. */
  get sockets(): number {
    const ids = this.model.calls.map(({ headers }) => String(headers["x-request-id"]).split(".")[0]);
    return new Set(ids).size;
  }

  /** The environment variables that the examples of the documentation read. */
  get environment() {
    return { SVC_TTS_SOCKETS: `${this.url}/v1`, SVC_TTS_API_KEY: this.api.key };
  }

  async stop(): Promise<void> {
    await this.#program.stop();
    await this.api.stop();
    await this.model.close();
  }
}
