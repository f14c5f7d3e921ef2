import { Agent, type Dispatcher, request } from "undici";
import { maxResponseBytes } from "../../../config/contract/license-check.ts";
import type { Clock } from "../../../lib/clock.ts";

export interface IssuerClient {
  /** What it says of the license with this id, unread. @throws Error saying why there is no answer */
  ask(id: string): Promise<string>;
  close(): Promise<void>;
}

export interface IssuerClientOptions {
  readonly endpoint: string;
  /** PEM; whom its certificate must come from, where the system does not know it. */
  readonly authority: string | undefined;
  /** Longest time for the whole answer, the connection included. */
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Asks over HTTPS. Nothing is sent but the license's id; redirects are not followed. */
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
        throw new Error(`no whole answer within ${withinMs} ms`, { cause: error });
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
    throw new Error(`it answered with status ${statusCode}`);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxResponseBytes) throw new Error(`its answer is longer than ${maxResponseBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
