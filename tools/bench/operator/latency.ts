/**
 * Measures the time from a change of a spec in the API server to the write of the last child that depends on
 * this spec.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { AuditLog, Request } from "./audit.ts";
import type { Plot } from "./field.ts";
import type { Fleet } from "./fleet.ts";

export interface Runner {
  readonly plot: Plot;
  readonly fleet: Fleet;
}

const withinMs = 60_000;
const pollMs = 10;

/** Measures changes with the audit log. Only one TtsDeployment may change at a time. */
export class Stopwatch {
  readonly #audit: AuditLog;
  readonly #seen = new Map<string, Request[]>();

  constructor(audit: AuditLog) {
    this.#audit = audit;
  }

  /**
   * Changes one TtsDeployment, and waits until the operator has written all of its children. Returns the time
   * in milliseconds, by the clock of the API server.
   */
  async change({ plot, fleet }: Runner, index: number, version: number): Promise<number> {
    this.#look();
    this.#seen.clear();
    const { name, children } = await fleet.change(index, version);
    const deadline = performance.now() + withinMs;
    for (;;) {
      this.#look();
      const changedMs = this.#when(plot.namespace, `ttsdeployments/${name}`, (user) => user !== plot.user);
      const times = children.map((child) => this.#when(plot.namespace, child, (user) => user === plot.user));
      if (changedMs !== undefined && times.every((time) => time !== undefined))
        return Math.max(...times) - changedMs;
      if (performance.now() > deadline) {
        const open = children.filter((_child, i) => times[i] === undefined).join(", ");
        throw new Error(`${plot.namespace}: ${open} did not change within ${withinMs} ms after ${name}`);
      }
      await sleep(pollMs);
    }
  }

  #look(): void {
    for (const request of this.#audit.news()) {
      if (request.verb !== "patch" && request.verb !== "update") continue;
      const key = `${request.namespace}/${request.resource}/${request.name}`;
      const known = this.#seen.get(key) ?? [];
      this.#seen.set(key, [...known, request]);
    }
  }

  /** Returns the time of the first successful write by a user that `isUser` accepts. */
  #when(namespace: string, what: string, isUser: (user: string) => boolean): number | undefined {
    const requests = this.#seen.get(`${namespace}/${what}`) ?? [];
    return requests.find(({ user, status }) => isUser(user) && status < 300)?.answeredMs;
  }
}
