import { type Clock, systemClock } from "../../../../lib/clock.ts";
import { GeneratorError } from "../../runtime/generator-outcomes.ts";
import { headersFor, type ServerAddress } from "../server/server-address.ts";

export interface PostRequest {
  readonly server: ServerAddress;
  readonly path: string;
  readonly body: string;
  /** The longest time without a byte, in milliseconds. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Sends a POST request, and yields the pieces of the response body. If the signal aborts, the iteration ends
 * and the request is canceled.
 * @throws GeneratorError
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
  const startTimer = () => clock.after(silenceMs, () => silence.abort());
  let stopTimer = startTimer();
  const cancel = AbortSignal.any([signal, silence.signal]);
  try {
    const response = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: headersFor(server),
      body,
      signal: cancel,
    });
    if (!response.ok) throw await refusal(response);
    if (!response.body) throw new GeneratorError("away", "the generator sent a response without a body");
    for await (const piece of response.body) {
      stopTimer(); // The time in which the consumer uses a piece does not count as silence.
      yield piece;
      stopTimer = startTimer();
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
    stopTimer();
    silence.abort(); // The abort cancels the request if the consumer stopped reading.
  }
}

/**
 * Creates the error for a response. The body is not logged, because it may repeat the request's text. vLLM
 * logs the error itself.
 */
async function refusal(response: Response): Promise<Error> {
  await response.body?.cancel();
  const message = `the generator returned HTTP status ${response.status}`;
  return new GeneratorError(response.status < 500 ? "refused" : "away", message);
}
