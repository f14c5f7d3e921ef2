import { Agent, type Dispatcher, request } from "undici";
import { maxResponseBytes } from "../../../config/contract/license-check.ts";
import type { Clock } from "../../../lib/clock.ts";

export interface IssuerClient {
  /**
   * Returns the issuer's response about the license with this ID. The response is not verified.
   * @throws Error if the issuer sends no complete response.
   */
  ask(id: string): Promise<string>;
  close(): Promise<void>;
}

export interface IssuerClientOptions {
  readonly endpoint: string;
  /** The PEM certificate of the issuer's authority. The value is undefined for a public authority. */
  readonly authority: string | undefined;
  /** The time limit for the connection and the whole response together. */
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Creates a client that sends the ID of the license over HTTPS. The client does not follow redirects. */
export function createIssuerClient({
  endpoint,
  authority,
  withinMs,
  clock,
}: IssuerClientOptions): IssuerClient {
  const agent = new Agent({
    connect: { timeout: withinMs, ...(authority !== undefined && { ca: authority }) },
  });
  return {
    async ask(id) {
      const tooLate = new AbortController();
      const { signal } = tooLate;
      const cancel = clock.after(withinMs, () => tooLate.abort(), { isBackground: true });
      try {
        return await readText(
          await request(endpoint, {
            method: "POST",
            headers: { "content-type": "application/json", accept: "application/jwt" },
            body: JSON.stringify({ id }),
            dispatcher: agent,
            signal,
          }),
        );
      } catch (error) {
        if (!signal.aborted) throw error;
        throw new Error(`the license issuer sent no complete response within ${withinMs} ms`, {
          cause: error,
        });
      } finally {
        cancel();
      }
    },
    close: () => agent.destroy(),
  };
}

async function readText({ statusCode, body }: Dispatcher.ResponseData): Promise<string> {
  if (statusCode !== 200) {
    body.on("error", () => undefined).destroy();
    throw new Error(`the license issuer responded with status ${statusCode} instead of 200`);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxResponseBytes)
      throw new Error(`the response of the license issuer is longer than ${maxResponseBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
