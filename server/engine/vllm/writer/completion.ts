import type { Sampling } from "../../../contract/speech.ts";
import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import type { TokensManifest } from "../model/manifest-schema.ts";
import { type ServerAddress, servedName } from "../server/server-address.ts";
import { readResponseBody } from "./response-body.ts";

export interface CompletionRequest {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
  /** The seed. Equal seeds give equal results at any temperature. */
  readonly seed: number | undefined;
  /** Whether end tokens are ignored, so that a measurement writes tokens up to the limit. */
  readonly withoutEnd?: boolean;
}

/** Requests tokens from vLLM. */
export class Completions {
  readonly #manifest: TokensManifest;
  /** The end of a request's body: the tokens that the model may write, or nothing. */
  readonly #bodyEnd: string;

  constructor(manifest: TokensManifest) {
    this.#manifest = manifest;
    const { base, codebook, slots } = manifest.codec;
    const codes = Array.from({ length: slots.length * codebook }, (_, i) => base + i);
    // The list is converted to JSON once, because it may contain thirty thousand tokens. A model that writes
    // other tokens before its speech gets no list.
    const allowed = JSON.stringify([...codes, ...manifest.stop]);
    this.#bodyEnd = manifest.startAfter === undefined ? `,"allowed_token_ids":${allowed}}` : "}";
  }

  /**
   * Yields the tokens that follow a prompt as vLLM writes them, without the end token.
   * @param silenceMs the longest time without a token.
   * @throws GeneratorError
   */
  async *write(
    server: ServerAddress,
    request: CompletionRequest,
    silenceMs: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly number[], void, void> {
    const body = this.#body(request);
    const pieces = readResponseBody({ server, path: "/v1/completions", body, silenceMs, signal });
    let isOver = false;
    for await (const event of events(pieces)) {
      if (event.error)
        throw new GeneratorError(
          "away",
          `the generator failed: ${event.error.message ?? "the response has no error message"}`,
        );
      const choice = event.choices?.[0];
      const tokens = (choice?.token_ids ?? []).filter((token) => !this.#manifest.stop.includes(token));
      if (tokens.length > 0) yield tokens;
      if (choice?.finish_reason === "stop" || choice?.finish_reason === "length") isOver = true;
    }
    if (!isOver && !signal.aborted)
      throw new GeneratorError("away", "the generator's response was interrupted");
  }

  /** Returns the token limit of a request. A completion that reaches the limit was cut. */
  mostTokens({ prompt, sampling }: Pick<CompletionRequest, "prompt" | "sampling">): number {
    return Math.max(1, Math.min(sampling.maxTokens, this.#manifest.context - prompt.length));
  }

  #body({ prompt, sampling, seed, withoutEnd = false }: CompletionRequest): string {
    const { stop } = this.#manifest;
    const body = JSON.stringify({
      model: servedName,
      prompt,
      stream: true,
      return_token_ids: true,
      max_tokens: this.mostTokens({ prompt, sampling }),
      temperature: sampling.temperature,
      top_p: sampling.topP,
      repetition_penalty: sampling.repetitionPenalty,
      // These values disable the defaults of the model.
      top_k: 0,
      min_p: 0,
      presence_penalty: 0,
      frequency_penalty: 0,
      stop_token_ids: stop,
      ignore_eos: withoutEnd,
      min_tokens: withoutEnd ? sampling.maxTokens : 0,
      skip_special_tokens: false,
      ...(seed !== undefined && { seed }),
    });
    return body.slice(0, -1) + this.#bodyEnd;
  }
}

interface CompletionEvent {
  readonly error?: { readonly message?: string };
  readonly choices?: readonly {
    readonly token_ids?: readonly number[] | null;
    readonly finish_reason?: string | null;
  }[];
}

/** Reads server-sent events. Each event is a line `data: JSON`, and the last event is `data: [DONE]`. */
async function* events(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<CompletionEvent, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = eventOf(line);
      if (event) yield event;
    }
  }
}

function eventOf(line: string): CompletionEvent | undefined {
  const data = /^data: ?(\{.*\})\s*$/u.exec(line)?.[1];
  if (data === undefined) return undefined;
  try {
    return JSON.parse(data) as CompletionEvent;
  } catch (cause) {
    throw new GeneratorError("away", "the generator sent invalid JSON", { cause });
  }
}
