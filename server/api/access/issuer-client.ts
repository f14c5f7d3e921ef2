import { Agent, type Dispatcher, request } from "undici";
import { maxResponseBytes } from "../../../config/contract/license-check.ts";
import type { Clock } from "../../../lib/clock.ts";

export interface IssuerClient {
  /**
   * Returns the issuer's response about the license with this ID, not yet verified. @throws Error with the
   * reason if there is no response
   */
  ask(id: string): Promise<string>;
  close(): Promise<void>;
}

export interface IssuerClientOptions {
  readonly endpoint: string;
  /** PEM certificate of the issuer's authority, if it is a private one. */
  readonly authority: string | undefined;
  /** Longest time for the whole response, including the connection. */
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Sends the request over HTTPS. It contains only the license's ID; redirects are not followed. */
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
        throw new Error(`no complete response within ${withinMs} ms`, { cause: error });
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
    throw new Error(`it responded with status ${statusCode}`);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxResponseBytes) throw new Error(`its response is longer than ${maxResponseBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
