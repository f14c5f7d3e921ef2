import type { Load } from "./load.ts";

const readLimitMs = 10_000;
/** Length of each completion; a longer one only repeats the measurement. */
const tokensOfCompletion = 1_200;
const tokensOfPrompt = 32;

/** vLLM itself, without the project's server in front. */
export class PlainVllm {
  readonly #url: string;

  /** @param url for example `http://127.0.0.1:8001`. */
  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  /** Tokens written since the start of vLLM, for all clients. @throws if the response is not one of vLLM. */
  async tokens(): Promise<number> {
    const answer = await fetch(`${this.#url}/metrics`, { signal: AbortSignal.timeout(readLimitMs) });
    const counts = [
      ...(await answer.text()).matchAll(/^vllm:generation_tokens_total(?:\{[^}]*\})? (\S+)$/gm),
    ];
    if (counts.length === 0) throw new Error(`${this.#url}/metrics has no vllm:generation_tokens_total.`);
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /**
   * Measures tokens per second with this many concurrent completions. Each is repeated as soon as it has
   * ended.
   */
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

/**
 * Token IDs that every vocabulary has. Each prompt starts with another one, because vLLM does not compute a
 * known prompt again.
 */
function promptOf(asked: number): number[] {
  return Array.from({ length: tokensOfPrompt }, (_, at) => 1 + ((asked + at * 7) % 97));
}
