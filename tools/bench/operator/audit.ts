/** Reads the audit log of the API server, which records the requests of clients. */
import { closeSync, openSync, readSync } from "node:fs";

/** A finished request. */
export interface Request {
  readonly user: string;
  /** The verb, such as get, list, watch, create, update, patch or delete. */
  readonly verb: string;
  /** The resource in lower-case plural, with its subresource, such as `ttsdeployments/status`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly status: number;
  /** The time of the complete response by the clock of the API server, in milliseconds since the epoch. */
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
  /** The time in the format of RFC 3339, with microseconds. */
  readonly stageTimestamp: string;
}

/**
 * Returns the audit policy. The policy records every request of `users`, and only changes of TtsDeployments
 * by other users. Watches are recorded at their start and end. `users` are full names, for example
 * `system:serviceaccount:NAMESPACE:NAME`.
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

/** Reads the log file. Each read continues at the last position. */
export class AuditLog {
  readonly #file: number;
  #rest = "";

  constructor(path: string) {
    this.#file = openSync(path, "r");
  }

  /** Yields the requests that finished since the last call, in the order of the log. */
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

/** Returns the microseconds since the epoch. `Date` supports only milliseconds. */
function microseconds(time: string): number {
  const fraction = /\.(\d+)Z$/.exec(time)?.[1] ?? "";
  return Date.parse(time.replace(/\.\d+Z$/, "Z")) * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}
