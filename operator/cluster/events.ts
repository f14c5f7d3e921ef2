import { createHash } from "node:crypto";
import { fieldManager } from "../../config/contract/names.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ClusterClient } from "./client.ts";
import { microTime } from "./micro-time.ts";

/** The content of an event, which `kubectl describe` shows. */
export type EventDetails = {
  regarding: KubernetesObject;
  type: "Normal" | "Warning";
  /** The machine-readable reason in UpperCamelCase, such as `LicenseExpired`. */
  reason: string;
  /** The action of the operator in UpperCamelCase, such as `HoldRollout`. */
  action: string;
  /** The message for users. It is cut after 1,024 bytes. */
  note: string;
};

export type RecorderOptions = {
  client: Pick<ClusterClient, "apply">;
  /** The name of this process, which the Lease also contains. */
  instance: string;
  /**
   * Called if an event is dropped because it could not be written, or because of a limit. It must not throw.
   */
  onDropped: (happening: EventDetails, reason: unknown) => void;
  clock?: Clock;
};

type Series = { event: KubernetesObject; count: number; lastMs: number; writtenMs: number };

const maxSeries = 4_096;
const maxWaiting = 1_000;
/** If an event is repeated within this time, the recorder increases the count of the existing event. */
const seriesMs = 10 * 60_000;
/** The shortest time between two writes of an event's count. */
const countEveryMs = 60_000;
/**
 * The limits of client-go: after a burst of events, an object may have one event in five minutes. Warnings
 * have a separate budget, so that no warning is lost if a pool is scaled often.
 */
const burst = 25;
const refillMs = 5 * 60_000;
const maxNoteBytes = 1_024;

/**
 * Writes events (events.k8s.io/v1) in the background. `record` returns immediately and never throws. A
 * repeated event increases the count of the existing event. The number of events for each object is limited.
 */
export class EventRecorder {
  readonly #options: RecorderOptions;
  readonly #clock: Clock;
  readonly #series = new LruCache<string, Series>(maxSeries);
  readonly #budgets = new Map<string, { left: number; filledMs: number }>();
  readonly #waiting: { happening: EventDetails; event: KubernetesObject }[] = [];
  #writing: Promise<void> | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  record(happening: EventDetails): void {
    const nowMs = this.#clock.nowMs();
    const key = keyOfSeries(happening);
    const known = this.#series.get(key);
    if (known !== undefined && nowMs - known.lastMs < seriesMs) {
      this.#again(known, happening, nowMs);
      return;
    }
    if (!this.#spend(`${happening.regarding.metadata.uid ?? key}/${happening.type}`, nowMs)) {
      this.#options.onDropped(happening, "the object has too many events");
      return;
    }
    const event = this.#eventOf(happening, key, nowMs);
    this.#series.set(key, { event, count: 1, lastMs: nowMs, writtenMs: nowMs });
    this.#write(happening, event);
  }

  /** Number of events that are not written yet. */
  get waiting(): number {
    return this.#waiting.length + (this.#writing === undefined ? 0 : 1);
  }

  /** Resolves when every event that was recorded so far is written or dropped. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  #again(series: Series, happening: EventDetails, nowMs: number): void {
    series.count += 1;
    series.lastMs = nowMs;
    if (nowMs - series.writtenMs < countEveryMs) return;
    series.writtenMs = nowMs;
    const observed = { count: series.count, lastObservedTime: microTime(nowMs) };
    this.#write(happening, { ...series.event, series: observed });
  }

  #spend(owner: string, nowMs: number): boolean {
    const budget = this.#budgets.get(owner) ?? { left: burst, filledMs: nowMs };
    const refills = Math.floor((nowMs - budget.filledMs) / refillMs);
    budget.left = Math.min(burst, budget.left + refills);
    budget.filledMs += refills * refillMs;
    this.#budgets.set(owner, budget);
    if (budget.left < 1) return false;
    budget.left -= 1;
    return true;
  }

  #eventOf(
    { regarding, type, reason, action, note }: EventDetails,
    key: string,
    nowMs: number,
  ): KubernetesObject {
    const { name, namespace, uid, resourceVersion } = regarding.metadata;
    const hash = createHash("sha256").update(`${key}\n${nowMs}\n${this.#options.instance}`).digest("hex");
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name.slice(0, 230)}.${hash.slice(0, 16)}`, namespace: namespace ?? "default" },
      eventTime: microTime(nowMs),
      reportingController: fieldManager,
      reportingInstance: this.#options.instance.slice(0, 128),
      action: action.slice(0, 128),
      reason: reason.slice(0, 128),
      regarding: {
        apiVersion: regarding.apiVersion,
        kind: regarding.kind,
        namespace,
        name,
        uid,
        resourceVersion,
      },
      note: cut(note, maxNoteBytes),
      type,
    };
  }

  #write(happening: EventDetails, event: KubernetesObject): void {
    if (this.#waiting.length >= maxWaiting) {
      this.#options.onDropped(happening, "the queue of unwritten events is full");
      return;
    }
    this.#waiting.push({ happening, event });
    this.#writing ??= this.#drain();
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#options.client.apply(next.event);
      } catch (error) {
        this.#options.onDropped(next.happening, error);
      }
    }
    this.#writing = undefined;
  }
}

function keyOfSeries({ regarding, type, reason, action, note }: EventDetails): string {
  const { namespace, name, uid } = regarding.metadata;
  return [regarding.kind, namespace, name, uid, type, reason, action, note].join("\n");
}

function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  // If the cut is inside a character, the text ends in a replacement character, which is removed.
  return `${Buffer.from(text)
    .subarray(0, bytes - 3)
    .toString("utf8")
    .replace(/\uFFFD$/, "")}…`;
}
