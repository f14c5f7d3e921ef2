import type { JSONWebKeySet } from "jose";

/** The settings of the operator that affect children. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys that licenses are judged by. */
  readonly licenseKeys: JSONWebKeySet;
}

/** Images that the operator uses where a spec names none. */
export interface ServerImage {
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never" | undefined;
  /** The OpenTelemetry Collector's contrib distribution; absent: the one that the tests know. */
  readonly collectorImage?: string;
  /** Pods run as the image's own user and group; false: as the cluster assigns them. True unless given. */
  readonly fixedUserIds?: boolean;
}
