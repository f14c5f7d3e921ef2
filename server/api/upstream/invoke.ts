import type { Dispatcher } from "undici";
import { Failure, type FieldError, isErrorCode } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import { callerHeader, noQueueHeader, orcaHeader, wireType } from "../../contract/wire.ts";
import { readBounded } from "./bounded-body.ts";
import { type LoadReport, readLoadReport } from "./load-report.ts";

/** An error body of a model tier is a small problem document. */
const maxProblemBytes = 64 * 1024;

/** One request to one replica. */
export interface ReplicaCall {
  readonly agent: Dispatcher;
  /** Base URL of the replica. */
  readonly url: string;
  /** The internal token, where there is one. */
  readonly secret: string | undefined;
  readonly requestId: string;
  /** The id of the caller's key. */
  readonly caller: string;
  readonly signal: AbortSignal;
  /** Whether the replica may let the request wait for a place; else it refuses at once where it has none. */
  readonly mayQueue: boolean;
  /** Told the replica's load, with every answer that tells it. */
  readonly onLoad: (report: LoadReport) => void;
  /** Go on with the request's trace. */
  readonly traceHeaders: Readonly<Record<string, string>>;
}

/**
 * Has a replica speak; resolves with the frames' bytes once it has begun to answer.
 * @throws Failure as the model tier told it, or what the connection throws.
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

/** A model tier's refusal, as its own problem document tells it. */
async function readProblem({ statusCode, body, headers }: Dispatcher.ResponseData): Promise<Failure> {
  const problem = parseProblem(await readBounded(body, maxProblemBytes));
  const code = problem.code;
  if (!isErrorCode(code) || code === "unauthorized") {
    return new Failure(
      "model_failed",
      "The model tier refused the API tier; its operator finds why in the logs.",
      {
        cause: new Error(`the model tier answered ${statusCode} ${String(code ?? "")}`),
      },
    );
  }
  const retryAfter = Number(headers["retry-after"]);
  return new Failure(code, typeof problem.detail === "string" ? problem.detail : "The model refused.", {
    ...(Array.isArray(problem.errors) && { fields: problem.errors as FieldError[] }),
    ...(Number.isInteger(retryAfter) && { retryAfterSeconds: retryAfter }),
  });
}

function parseProblem(text: string | undefined): Partial<Record<"code" | "detail" | "errors", unknown>> {
  try {
    return JSON.parse(text ?? "") ?? {};
  } catch {
    return {}; // not our problem document; the status alone is told
  }
}
