import type { Dispatcher } from "undici";
import { Failure, type FieldError, isErrorCode } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import { callerHeader, noQueueHeader, orcaHeader, wireType } from "../../contract/wire.ts";
import { readBounded } from "./bounded-body.ts";
import { type LoadReport, readLoadReport } from "./load-report.ts";

/** The limit of the body of an error response, which is a small problem document. */
const maxProblemBytes = 64 * 1024;

export interface ReplicaCall {
  readonly agent: Dispatcher;
  /** The base URL of the replica. */
  readonly url: string;
  /** The internal token, if one is configured. */
  readonly secret: string | undefined;
  readonly requestId: string;
  /** The ID of the client's key. */
  readonly caller: string;
  readonly signal: AbortSignal;
  /**
   * Whether the replica may queue the request. If the value is false, a replica without a free slot rejects
   * the request.
   */
  readonly mayQueue: boolean;
  /** The request calls this function with the load of the replica, if the response contains a report. */
  readonly onLoad: (report: LoadReport) => void;
  /** The headers that continue the request's trace. */
  readonly traceHeaders: Readonly<Record<string, string>>;
}

/**
 * Sends an invocation to a replica. The promise resolves with the body when the response has started.
 * @throws Failure if the replica rejects the invocation; the error of the connection if the request fails.
 */
export async function invoke(
  { agent, url, secret, requestId, caller, signal, mayQueue, onLoad, traceHeaders }: ReplicaCall,
  invocation: Invocation,
): Promise<Dispatcher.ResponseData["body"]> {
  const response = await agent.request({
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
  const report = readLoadReport(response.headers[orcaHeader]);
  if (report) onLoad(report);
  if (response.statusCode !== 200) throw await readProblem(response);
  return response.body;
}

/** Reads the failure from the problem document of a model tier. */
async function readProblem({ statusCode, body, headers }: Dispatcher.ResponseData): Promise<Failure> {
  const problem = parseProblem(await readBounded(body, maxProblemBytes));
  const code = problem.code;
  if (!isErrorCode(code) || code === "unauthorized") {
    return new Failure(
      "model_failed",
      "The model tier rejected the API tier's request; the administrator finds the reason in the model tier's log.",
      {
        cause: new Error(`the model tier responded with ${statusCode} ${String(code ?? "")}`),
      },
    );
  }
  const retryAfter = Number(headers["retry-after"]);
  return new Failure(
    code,
    typeof problem.detail === "string"
      ? problem.detail
      : "The model rejected the request; the administrator finds the reason in the model tier's log.",
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
    return {}; // The body is no problem document, so the failure contains only the status.
  }
}
