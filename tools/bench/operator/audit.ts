/** What the API server itself says of every request, whoever's program sent it: its audit log. */
import { closeSync, openSync, readSync } from "node:fs";

/** One request that was answered. */
export interface Request {
  readonly user: string;
  /** get, list, watch, create, update, patch, delete … */
  readonly verb: string;
  /** Lower-case plural, with its subresource as in `ttsdeployments/status`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly status: number;
  /** When the answer was complete, milliseconds since the epoch by the API server's clock. */
  readonly answeredMs: number;
}

interface AuditEvent {
  readonly user: { readonly username: string };
  readonly verb: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  /** RFC 3339 with microseconds. */
  readonly stageTimestamp: string;
}

/**
 * Of whom everything is told, and of all others only changes of TtsDeployments. Watches are told when they end and begin.
 * @param users whole names, as `system:serviceaccount:NAMESPACE:NAME`
 */
export function auditPolicy(users: readonly string[]): object {
  return {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    omitStages: ["RequestReceived"],
    omitManagedFields: true,
    rules: [
      { level: "Metadata", users },
      {
        level: "Metadata",
        verbs: ["patch", "update", "create"],
        resources: [{ group: "tts.svc.dev", resources: ["ttsdeployments"] }],
      },
      { level: "None" },
    ],
  };
}

const pieceBytes = 1 << 20;

/** Reads on from where it was read last. */
export class AuditLog {
  readonly #file: number;
  #rest = "";

  constructor(path: string) {
    this.#file = openSync(path, "r");
  }

  /** What was answered since the last call, in the log's order. */
  *news(): Generator<Request> {
    const piece = Buffer.alloc(pieceBytes);
    for (let bytes = this.#read(piece); bytes > 0; bytes = this.#read(piece)) {
      const lines = (this.#rest + piece.toString("latin1", 0, bytes)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) yield requestOf(JSON.parse(line) as AuditEvent);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #read(piece: Buffer): number {
    return readSync(this.#file, piece);
  }
}

function requestOf({ user, verb, objectRef = {}, responseStatus, stageTimestamp }: AuditEvent): Request {
  const { resource = "", subresource, namespace = "", name = "" } = objectRef;
  return {
    user: user.username,
    verb,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    status: responseStatus?.code ?? 0,
    answeredMs: microseconds(stageTimestamp) / 1000,
  };
}

/** `Date` keeps milliseconds alone. */
function microseconds(time: string): number {
  const fraction = /\.(\d+)Z$/.exec(time)?.[1] ?? "";
  return Date.parse(time.replace(/\.\d+Z$/, "Z")) * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}
