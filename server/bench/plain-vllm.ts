import type { Load } from "./load.ts";

const readLimitMs = 10_000;
/** The number of tokens of each completion. A longer completion would only repeat the measurement. */
const tokensOfCompletion = 1_200;
const tokensOfPrompt = 32;

/** Measures vLLM itself, without the server of this project. */
export class PlainVllm {
  readonly #url: string;

  /**
   * Connects to vLLM.
   * @param url the URL of vLLM, for example `http://127.0.0.1:8001`.
   */
  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  /**
   * Returns the number of tokens that vLLM has written since its start, for all clients.
   * @throws Error if the response does not come from vLLM.
   */
  async tokens(): Promise<number> {
    const response = await fetch(`${this.#url}/metrics`, { signal: AbortSignal.timeout(readLimitMs) });
    const counts = [
      ...(await response.text()).matchAll(/^vllm:generation_tokens_total(?:\{[^}]*\})? (\S+)$/gm),
    ];
    if (counts.length === 0)
      throw new Error(
        `${this.#url}/metrics has no metric vllm:generation_tokens_total. Check that the URL is the URL of vLLM.`,
      );
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /**
   * Measures the tokens per second of concurrent completions. Each completion is repeated as soon as it has
   * ended.
   */
  async tokensPerSecond({ streams, seconds }: Load, signal: AbortSignal): Promise<number> {
    const model = await this.#model();
    const ending = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
    let requests = 0;
    const client = async () => {
      while (!ending.aborted) await this.#complete({ model, prompt: promptOf(requests++) }, ending);
    };
    const [before, startedAt] = [await this.tokens(), performance.now()];
    await Promise.all(Array.from({ length: streams }, client));
    const elapsedSeconds = (performance.now() - startedAt) / 1000;
    return ((await this.tokens()) - before) / elapsedSeconds;
  }

  async #model(): Promise<string> {
    const response = await fetch(`${this.#url}/v1/models`, { signal: AbortSignal.timeout(readLimitMs) });
    const { data } = (await response.json()) as { data?: { id: string }[] };
    const [model] = data ?? [];
    if (!model) throw new Error(`${this.#url}/v1/models lists no model. Check that vLLM serves a model.`);
    return model.id;
  }

  async #complete(request: { model: string; prompt: number[] }, signal: AbortSignal): Promise<void> {
    const body = {
      ...request,
      max_tokens: tokensOfCompletion,
      ignore_eos: true,
      temperature: 0.5,
      stream: true,
    };
    try {
      const response = await fetch(`${this.#url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal,
      });
      if (!response.ok) {
        throw new Error(
          `${this.#url}/v1/completions returned HTTP status ${response.status}: ${await response.text()}`,
        );
      }
      await response.body?.pipeTo(new WritableStream());
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/**
 * Returns a prompt of token IDs that every vocabulary has. All prompts start differently, because vLLM does
 * not compute a known prompt again.
 */
function promptOf(requests: number): number[] {
  return Array.from({ length: tokensOfPrompt }, (_, at) => 1 + ((requests + at * 7) % 97));
}
