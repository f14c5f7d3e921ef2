import { FetchFailure, redactUrl } from "./failure.ts";

/** Sends requests to registries and catalogues, and reads their responses, which are small. */

const maxResponseBytes = 16 * 1024 * 1024;
const responseLimitMs = 30_000;

export interface RequestOptions {
  readonly headers?: Record<string, string>;
  readonly signal: AbortSignal;
}

/**
 * Returns whether a URL is plain HTTP that leaves this machine. Other machines on the network path can read
 * and change the content of this kind of request.
 */
export function isReadable(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !/^(127(\.\d+){3}|\[::1\]|localhost)$/.test(hostname);
}

/**
 * Rejects a redirect from TLS to plain HTTP.
 * @throws FetchFailure
 */
export function refuseDowngrade(requestedUrl: string, response: Response): void {
  if (!requestedUrl.startsWith("https:") || !response.url.startsWith("http:")) return;
  throw new FetchFailure(
    `${redactUrl(requestedUrl)} redirects to plain HTTP, which does not protect the file; use a source without this redirect`,
  );
}

export async function httpGet(url: string, { headers = {}, signal }: RequestOptions): Promise<Response> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(responseLimitMs)]);
  try {
    const response = await fetch(url, { headers, signal: limited });
    refuseDowngrade(url, response);
    return response;
  } catch (cause) {
    if (cause instanceof FetchFailure) throw cause;
    throw new FetchFailure(
      `${redactUrl(url)} did not respond: ${reasonOf(cause)}. Check the URL and the network`,
      { cause },
    );
  }
}

/**
 * Reads a whole response.
 * @throws FetchFailure if the response is an error, or larger than a catalogue may be.
 */
export async function readResponse(response: Response, url: string): Promise<Buffer> {
  if (!response.ok) throw refusal(response, url);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxResponseBytes)
      throw new FetchFailure(
        `${redactUrl(url)} returned a list of more than ${maxResponseBytes} bytes; check the source`,
      );
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

const advice: Record<number, string> = {
  401: "credentials are required: set secretRef to a Secret with them",
  403: "the credentials are missing or not sufficient: check the Secret of secretRef",
  404: "the file does not exist: check the source",
};

export function refusal({ status }: Response, url: string): FetchFailure {
  return new FetchFailure(
    `${redactUrl(url)} returned HTTP status ${status}${advice[status] ? `; ${advice[status]}` : ""}`,
  );
}

/** Returns the reason of an error. `fetch` wraps the original error in its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
