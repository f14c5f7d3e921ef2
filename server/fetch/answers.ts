import { FetchFailure, redactUrl } from "./failure.ts";

/** Small responses of registries and catalogues. */

const maxAnswerBytes = 16 * 1024 * 1024;
const answerWithinMs = 30_000;

export interface RequestOptions {
  readonly headers?: Record<string, string>;
  readonly signal: AbortSignal;
}

/** Whether others on the network can read and change it: plain HTTP that leaves this machine. */
export function isReadable(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !/^(127(\.\d+){3}|\[::1\]|localhost)$/.test(hostname);
}

/** A redirect must not lead from TLS to plain HTTP. @throws FetchFailure */
export function refuseDowngrade(asked: string, response: Response): void {
  if (!asked.startsWith("https:") || !response.url.startsWith("http:")) return;
  throw new FetchFailure(
    `${redactUrl(asked)} redirects to plain HTTP, which does not protect the file; use a source that stays on https`,
  );
}

export async function httpGet(url: string, { headers = {}, signal }: RequestOptions): Promise<Response> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]);
  try {
    const response = await fetch(url, { headers, signal: limited });
    refuseDowngrade(url, response);
    return response;
  } catch (cause) {
    if (cause instanceof FetchFailure) throw cause;
    throw new FetchFailure(`${redactUrl(url)} does not respond: ${reasonOf(cause)}`, { cause });
  }
}

/** @throws FetchFailure if the response is an error, or larger than a catalogue may be */
export async function readResponse(response: Response, url: string): Promise<Buffer> {
  if (!response.ok) throw refusal(response, url);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxAnswerBytes)
      throw new FetchFailure(`${redactUrl(url)} returned more than ${maxAnswerBytes} bytes`);
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

const advice: Record<number, string> = {
  401: "credentials are required: name a Secret in secretRef",
  403: "the credentials are missing or not sufficient: see secretRef",
  404: "the file does not exist: check the source",
};

export function refusal({ status }: Response, url: string): FetchFailure {
  return new FetchFailure(
    `${redactUrl(url)} answers ${status}${advice[status] ? `; ${advice[status]}` : ""}`,
  );
}

/** fetch wraps the original error. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
