import { type Clock, systemClock } from "../../../../lib/clock.ts";
import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import { headersFor, type ServerAddress } from "../server/server-address.ts";

export interface PostRequest {
  readonly server: ServerAddress;
  readonly path: string;
  readonly body: string;
  /** Longest time without a byte in milliseconds. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Sends a POST request, and yields the pieces of the response's body. Ends early and cancels the request when
 * the signal aborts.
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
    if (!response.body) throw new GeneratorError("away", "the generator sent a response without a body");
    for await (const piece of response.body) {
      stopListening(); // Time that the consumer needs for a piece does not count as the generator's silence.
      yield piece;
      stopListening = listen();
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof GeneratorError) throw error;
    if (silence.signal.aborted)
      throw new GeneratorError("away", `the generator sent nothing for ${silenceMs} ms`);
    throw new GeneratorError(
      "away",
      `the generator's response was interrupted: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  } finally {
    stopListening();
    silence.abort(); // Cancels the request, also if the consumer stopped reading.
  }
}

/**
 * The rest of an error response may repeat the request's text, so it is not logged here. vLLM's own log has
 * it.
 */
async function refusal(response: Response): Promise<Error> {
  await response.body?.cancel();
  const message = `the generator answered ${response.status}`;
  return new GeneratorError(response.status < 500 ? "refused" : "away", message);
}
