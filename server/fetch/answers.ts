import { FetchFailure, shown } from "./failure.ts";

/** Small answers of registries and catalogues. */

const maxAnswerBytes = 16 * 1024 * 1024;
const answerWithinMs = 30_000;

export interface Asked {
  readonly headers?: Record<string, string>;
  readonly signal: AbortSignal;
}

export async function ask(url: string, { headers = {}, signal }: Asked): Promise<Response> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]);
  try {
    return await fetch(url, { headers, signal: limited });
  } catch (cause) {
    throw new FetchFailure(`${shown(url)} does not answer: ${reasonOf(cause)}`, { cause });
  }
}

/** @throws FetchFailure where the answer is no success or larger than a catalogue may be */
export async function readAnswer(response: Response, url: string): Promise<Buffer> {
  if (!response.ok) throw refusal(response, url);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxAnswerBytes)
      throw new FetchFailure(`${shown(url)} answers more than ${maxAnswerBytes} bytes`);
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

const advice: Record<number, string> = {
  401: "it needs credentials: name a Secret in secretRef",
  403: "the credentials do not allow it, or there are none: see secretRef",
  404: "it is not there: check the source",
};

export function refusal({ status }: Response, url: string): FetchFailure {
  return new FetchFailure(`${shown(url)} answers ${status}${advice[status] ? `; ${advice[status]}` : ""}`);
}

/** fetch wraps what went wrong. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
