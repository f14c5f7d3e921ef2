import type { Dispatcher } from "undici";
import { Failure, type FieldError, isErrorCode } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import { callerHeader, noQueueHeader, orcaHeader, wireType } from "../../contract/wire.ts";
import { readBounded } from "./bounded-body.ts";
import { type LoadReport, readLoadReport } from "./load-report.ts";

/** Limit of a model tier's error body, which is a small problem document. */
const maxProblemBytes = 64 * 1024;

/** One request to one replica. */
export interface ReplicaCall {
  readonly agent: Dispatcher;
  /** Base URL of the replica. */
  readonly url: string;
  /** The internal token, if there is one. */
  readonly secret: string | undefined;
  readonly requestId: string;
  /** ID of the client's key. */
  readonly caller: string;
  readonly signal: AbortSignal;
  /** Whether the replica may queue the request. Otherwise it rejects the request if it has no free slot. */
  readonly mayQueue: boolean;
  /** Called with the replica's load, for every response that contains it. */
  readonly onLoad: (report: LoadReport) => void;
  /** Headers that continue the request's trace. */
  readonly traceHeaders: Readonly<Record<string, string>>;
}

/**
 * Sends an invocation to a replica. Resolves with the frames' bytes when the response has started.
 * @throws Failure of the model tier, or the connection's error.
 */
export async function invoke(
  { agent, url, secret, requestId, caller, signal, mayQueue, onLoad, traceHeaders }: ReplicaCall,
  invocation: Invocation,
): Promise<Dispatcher.ResponseData["body"]> {
  const answer = await agent.request({
    origin: url,
    path: "/invocations",
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...traceHeaders,
      accept: wireType,
      "x-request-id": requestId,
      [callerHeader]: encodeURIComponent(caller.toWellFormed()),
      ...(!mayQueue && { [noQueueHeader]: "1" }),
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify(invocation),
    signal,
  });
  const report = readLoadReport(answer.headers[orcaHeader]);
  if (report) onLoad(report);
  if (answer.statusCode !== 200) throw await readProblem(answer);
  return answer.body;
}

/** The failure of a model tier, from its problem document. */
async function readProblem({ statusCode, body, headers }: Dispatcher.ResponseData): Promise<Failure> {
  const problem = parseProblem(await readBounded(body, maxProblemBytes));
  const code = problem.code;
  if (!isErrorCode(code) || code === "unauthorized") {
    return new Failure(
      "model_failed",
      "The model tier refused the API tier; the reason is in the model tier's log.",
      {
        cause: new Error(`the model tier responded with ${statusCode} ${String(code ?? "")}`),
      },
    );
  }
  const retryAfter = Number(headers["retry-after"]);
  return new Failure(
    code,
    typeof problem.detail === "string" ? problem.detail : "The model rejected the request.",
    {
      ...(Array.isArray(problem.errors) && { fields: problem.errors as FieldError[] }),
      ...(Number.isInteger(retryAfter) && { retryAfterSeconds: retryAfter }),
    },
  );
}

function parseProblem(text: string | undefined): Partial<Record<"code" | "detail" | "errors", unknown>> {
  try {
    return JSON.parse(text ?? "") ?? {};
  } catch {
    return {}; // Not a problem document of the server; only the status is used.
  }
}
