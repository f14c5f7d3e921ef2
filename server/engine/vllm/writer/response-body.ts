import { type Clock, systemClock } from "../../../../lib/clock.ts";
import { GeneratorError } from "../../runtime/generator-error.ts";
import { headersFor, type ServerAddress } from "../server/server-address.ts";

export interface PostRequest {
  readonly server: ServerAddress;
  readonly path: string;
  readonly body: string;
  /** Longest time without a byte, ms. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Posts, and gives the pieces of the answer's body as they come. Ends early, with the request taken back, when the signal aborts.
 * @throws GeneratorTrouble
 */
export async function* readResponseBody({
  server,
  path,
  body,
  silenceMs,
  signal,
  clock = systemClock,
}: PostRequest): AsyncGenerator<Uint8Array, void, void> {
  const silence = new AbortController();
  const listen = () => clock.after(silenceMs, () => silence.abort());
  let stopListening = listen();
  const leave = AbortSignal.any([signal, silence.signal]);
  try {
    const response = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: headersFor(server),
      body,
      signal: leave,
    });
    if (!response.ok) throw await refusal(response);
    if (!response.body) throw new GeneratorError("away", "the generator answered without a body");
    for await (const piece of response.body) {
      stopListening(); // whoever takes its time with a piece is not the generator's silence
      yield piece;
      stopListening = listen();
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof GeneratorError) throw error;
    if (silence.signal.aborted)
      throw new GeneratorError("away", `the generator said nothing for ${silenceMs} ms`);
    throw new GeneratorError("away", `the generator broke off: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    stopListening();
    silence.abort(); // also when nobody reads on: the request is taken back
  }
}

/** What it says more may repeat what it was asked, and is for no log; its own tells. */
async function refusal(response: Response): Promise<Error> {
  await response.body?.cancel();
  const message = `the generator answered ${response.status}`;
  return new GeneratorError(response.status < 500 ? "refused" : "away", message);
}
