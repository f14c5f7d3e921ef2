import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { CallObserver } from "./cluster/client.ts";
import type { QueueObserver } from "./loop/queue.ts";

const passSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What the operator counts, under the names that dashboards for controllers know. */
export class OperatorMetrics {
  readonly registry = new Registry();
  readonly queue: QueueObserver;
  readonly call: CallObserver;

  constructor() {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    const passes = new Counter({
      name: "controller_runtime_reconcile_total",
      help: "Passes, by kind and how they ended",
      labelNames: ["controller", "result"],
      registers,
    });
    const took = new Histogram({
      name: "controller_runtime_reconcile_time_seconds",
      help: "Time of a pass",
      labelNames: ["controller"],
      buckets: passSeconds,
      registers,
    });
    const waiting = new Gauge({ name: "workqueue_depth", help: "Keys that wait for a pass", registers });
    const running = new Gauge({
      name: "controller_runtime_active_workers",
      help: "Passes under way",
      registers,
    });
    const calls = new Counter({
      name: "rest_client_requests_total",
      help: "Requests to the API server; code 0 is no answer",
      labelNames: ["method", "kind", "code"],
      registers,
    });
    this.queue = {
      depth: (keys, passesNow) => {
        waiting.set(keys);
        running.set(passesNow);
      },
      finished: (key, result, tookMs) => {
        const controller = key.split("/")[0] ?? "";
        passes.inc({ controller, result });
        took.observe({ controller }, tookMs / 1000);
      },
    };
    this.call = ({ method, kind, status }) => calls.inc({ method, kind, code: String(status) });
  }
}
