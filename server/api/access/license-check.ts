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

/** The periodic online check of the license. */
export interface LicenseCheck {
  /** The responses for the license evaluation. */
  facts(): OnlineCheck;
  /** The applicable response, as signed. */
  answer(): string | undefined;
  /** Takes over the responses of the routing table, then sends a request whenever it is due. */
  start(): Promise<void>;
  /** Reads the response of the routing table, which another pod may have received. */
  adopt(): Promise<void>;
  close(): Promise<void>;
}

export interface CheckOptions {
  readonly issuer: IssuerClient;
  /** How long a response is valid. */
  readonly intervalSeconds: number;
  /** ID of the current license. Undefined while there is no readable license. */
  readonly licenseId: () => string | undefined;
  readonly keys: () => JSONWebKeySet | undefined;
  /** The response that the operator has stored. Undefined without an operator. */
  readonly kept: () => RoutingTable["licenseCheck"];
  /** Called when a new response arrived. */
  readonly onNews: () => void;
  readonly onResult: (result: CheckResult) => void;
  readonly clock: Clock;
  /** Random from 0 to 1, so that pods that started together do not send at the same time. */
  readonly random: () => number;
  readonly log: Log;
}

/** Share of the interval after which the check is repeated. */
const askAfter = { least: 0.8, most: 0.9 };
/** How often the check evaluates whether a request is due. */
const lookMs = 1000;
/** Wait after the first failure. It doubles with each further one. */
const firstRetryMs = 30_000;
const longestRetryMs = 3_600_000;

export function createLicenseCheck(options: CheckOptions): LicenseCheck {
  const { issuer, intervalSeconds, licenseId, keys, kept, onNews, onResult, clock, random, log } = options;
  const now = () => clock.nowMs();
  const startedAt = now();
  const share = askAfter.least + (askAfter.most - askAfter.least) * random();
  const intervalMs = intervalSeconds * 1000;
  let known: IssuerResponse | undefined;
  let failures = 0;
  let retryAt = 0;
  let complaint: string | undefined;
  let asking: Promise<void> | undefined;

  const read = (text: string) => readLicenseAnswer(text, keys() ?? { keys: [] }, now());

  const take = (answer: IssuerResponse): void => {
    const best = known?.jti === answer.jti ? newestResponse([known, answer], answer.jti) : answer;
    if (best === known) return;
    known = best;
    onNews();
  };

  const adopt = async () => {
    const text = kept()?.answer;
    if (text === undefined || text === known?.text) return;
    const answer = await read(text).catch((error: Error) => {
      log.warn({ err: error }, "the license issuer's response in the routing table is invalid");
      return undefined;
    });
    if (answer !== undefined && (known === undefined || answer.jti === licenseId())) take(answer);
  };

  const ask = async (id: string) => {
    try {
      const answer = await read(await issuer.ask(id));
      if (answer.jti !== id) throw new Error("the response is about another license");
      failures = 0;
      retryAt = now() + Math.min(intervalMs / 10, longestRetryMs);
      if (complaint !== undefined) log.info({}, "the license's issuer responds again");
      complaint = undefined;
      onResult(answer.status);
      take(answer);
    } catch (error) {
      failures += 1;
      retryAt = now() + retryMs(failures, intervalMs, random);
      const { message } = error as Error;
      if (message !== complaint) log.warn({ err: error }, "the license's issuer sent no valid response");
      complaint = message;
      onResult("failed");
    }
  };

  const look = () => {
    const id = licenseId();
    if (asking !== undefined || id === undefined || now() < Math.max(retryAt, dueAt(id))) return;
    asking = ask(id).finally(() => {
      asking = undefined;
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
      stop = every(clock, lookMs, look);
    },
    adopt,
    async close() {
      stop?.();
      await issuer.close();
      await asking;
    },
  };
}

/** Doubles with each consecutive failure, with jitter. */
function retryMs(failures: number, intervalMs: number, random: () => number): number {
  const mostMs = Math.min(intervalMs / 4, longestRetryMs);
  return Math.min(firstRetryMs * 2 ** (failures - 1), mostMs) * (0.5 + random() / 2);
}

function sinceOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
