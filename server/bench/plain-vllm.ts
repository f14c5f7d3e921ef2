import type { Load } from "./load.ts";

const readLimitMs = 10_000;
/** Of each completion; who writes to the end of an utterance asks for as many. */
const tokensOfCompletion = 1_200;
const tokensOfPrompt = 32;

/** vLLM itself, without anything of ours before it. */
export class PlainVllm {
  readonly #url: string;

  /** @param url as `http://127.0.0.1:8001`. */
  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  /** Tokens written since it started, by whomever they were asked. @throws where it does not answer as vLLM does. */
  async tokens(): Promise<number> {
    const answer = await fetch(`${this.#url}/metrics`, { signal: AbortSignal.timeout(readLimitMs) });
    const counts = [
      ...(await answer.text()).matchAll(/^vllm:generation_tokens_total(?:\{[^}]*\})? (\S+)$/gm),
    ];
    if (counts.length === 0) throw new Error(`${this.#url}/metrics has no vllm:generation_tokens_total.`);
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** Tokens a second while as many completions are written at once, each asked for again as soon as it has ended. */
  async tokensPerSecond({ streams, seconds }: Load, signal: AbortSignal): Promise<number> {
    const model = await this.#model();
    const over = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
    let asked = 0;
    const caller = async () => {
      while (!over.aborted) await this.#complete({ model, prompt: promptOf(asked++) }, over);
    };
    const [before, startedAt] = [await this.tokens(), performance.now()];
    await Promise.all(Array.from({ length: streams }, caller));
    const elapsedSeconds = (performance.now() - startedAt) / 1000;
    return ((await this.tokens()) - before) / elapsedSeconds;
  }

  async #model(): Promise<string> {
    const answer = await fetch(`${this.#url}/v1/models`, { signal: AbortSignal.timeout(readLimitMs) });
    const { data } = (await answer.json()) as { data?: { id: string }[] };
    const [model] = data ?? [];
    if (!model) throw new Error(`${this.#url}/v1/models names no model.`);
    return model.id;
  }

  async #complete(of: { model: string; prompt: number[] }, signal: AbortSignal): Promise<void> {
    const body = { ...of, max_tokens: tokensOfCompletion, ignore_eos: true, temperature: 0.5, stream: true };
    try {
      const answer = await fetch(`${this.#url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal,
      });
      if (!answer.ok) {
        throw new Error(`${this.#url}/v1/completions answered ${answer.status}: ${await answer.text()}`);
      }
      await answer.body?.pipeTo(new WritableStream());
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** Ids that any vocabulary has, another beginning each time: a prompt that was seen before is not read again. */
function promptOf(asked: number): number[] {
  return Array.from({ length: tokensOfPrompt }, (_, at) => 1 + ((asked + at * 7) % 97));
}
