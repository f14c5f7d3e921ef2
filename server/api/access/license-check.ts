import type { JSONWebKeySet } from "jose";
import {
  type IssuerResponse,
  newestResponse,
  type OnlineCheck,
  readLicenseAnswer,
} from "../../../config/contract/license-check.ts";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import type { IssuerClient } from "./issuer-client.ts";

export type CheckResult = "good" | "revoked" | "failed";

/** Checks the license online at regular intervals. */
export interface LicenseCheck {
  /**
   * Returns the input of the license evaluation: the interval, the time at which the online checks started,
   * and the latest response.
   */
  facts(): OnlineCheck;
  /** Returns the latest valid response as the issuer signed it. */
  answer(): string | undefined;
  /** Reads the issuer's response in the routing table, and then sends requests when they are due. */
  start(): Promise<void>;
  /** Reads the issuer's response in the routing table, which another pod may have received. */
  adopt(): Promise<void>;
  close(): Promise<void>;
}

export interface CheckOptions {
  readonly issuer: IssuerClient;
  /** The number of seconds for which a response is valid. */
  readonly intervalSeconds: number;
  /** Returns the ID of the current license, or undefined while no license is readable. */
  readonly licenseId: () => string | undefined;
  readonly keys: () => JSONWebKeySet | undefined;
  /** Returns the response that the operator has stored, or undefined if there is none. */
  readonly kept: () => RoutingTable["licenseCheck"];
  /** The check calls this function after a new valid response. */
  readonly onNews: () => void;
  readonly onResult: (result: CheckResult) => void;
  readonly clock: Clock;
  /** Returns a random number from 0 to 1, so that pods do not send requests at the same time. */
  readonly random: () => number;
  readonly log: Log;
}

/** The next request is due after a random share of the interval between these limits. */
const dueShare = { least: 0.8, most: 0.9 };
/** The interval at which the check compares the time with the due time. */
const checkMs = 1000;
/** The delay after the first failure. The delay doubles with each further failure. */
const firstRetryMs = 30_000;
const longestRetryMs = 3_600_000;

const ignoredAnswer = "the license issuer's response in the routing table is invalid; the server ignores it";
const invalidAnswer = "the license issuer sent no valid response; the server sends the request again";

export function createLicenseCheck(options: CheckOptions): LicenseCheck {
  const { issuer, intervalSeconds, licenseId, keys, kept, onNews, onResult, clock, random, log } = options;
  const now = () => clock.nowMs();
  const startedAt = now();
  const share = dueShare.least + (dueShare.most - dueShare.least) * random();
  const intervalMs = intervalSeconds * 1000;
  let known: IssuerResponse | undefined;
  let failures = 0;
  let retryAt = 0;
  let loggedError: string | undefined;
  let pendingRequest: Promise<void> | undefined;

  const read = (text: string) => readLicenseAnswer(text, keys() ?? { keys: [] }, now());

  const accept = (answer: IssuerResponse): void => {
    const best = known?.jti === answer.jti ? newestResponse([known, answer], answer.jti) : answer;
    if (best === known) return;
    known = best;
    onNews();
  };

  const adopt = async () => {
    const text = kept()?.answer;
    if (text === undefined || text === known?.text) return;
    const answer = await read(text).catch((error: Error) => {
      log.warn({ err: error }, ignoredAnswer);
      return undefined;
    });
    if (answer !== undefined && (known === undefined || answer.jti === licenseId())) accept(answer);
  };

  const requestStatus = async (id: string) => {
    try {
      const answer = await read(await issuer.ask(id));
      if (answer.jti !== id) throw new Error(`the response is about the license ${answer.jti}, not ${id}`);
      failures = 0;
      retryAt = now() + Math.min(intervalMs / 10, longestRetryMs);
      if (loggedError !== undefined) log.info({}, "the license issuer responds again");
      loggedError = undefined;
      onResult(answer.status);
      accept(answer);
    } catch (error) {
      failures += 1;
      retryAt = now() + retryMs(failures, intervalMs, random);
      const { message } = error as Error;
      if (message !== loggedError) log.warn({ err: error }, invalidAnswer);
      loggedError = message;
      onResult("failed");
    }
  };

  const sendIfDue = () => {
    const id = licenseId();
    if (pendingRequest !== undefined || id === undefined || now() < Math.max(retryAt, dueAt(id))) return;
    pendingRequest = requestStatus(id).finally(() => {
      pendingRequest = undefined;
    });
  };
  const dueAt = (id: string) => (known?.jti === id ? known.iat * 1000 + intervalMs * share : 0);
  let stop: (() => void) | undefined;
  const since = () => sinceOf(kept()?.since) ?? startedAt;

  return {
    facts: () => ({ intervalSeconds, since: since(), answers: known ? [known] : [] }),
    answer: () => known?.text,
    async start() {
      await adopt();
      stop = every(clock, checkMs, sendIfDue);
    },
    adopt,
    async close() {
      stop?.();
      await issuer.close();
      await pendingRequest;
    },
  };
}

/** Returns the delay after a failure. The delay doubles with each consecutive failure, and has jitter. */
function retryMs(failures: number, intervalMs: number, random: () => number): number {
  const mostMs = Math.min(intervalMs / 4, longestRetryMs);
  return Math.min(firstRetryMs * 2 ** (failures - 1), mostMs) * (0.5 + random() / 2);
}

function sinceOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
