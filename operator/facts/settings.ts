import type { JSONWebKeySet } from "jose";

/** What the operator was started with, as far as children show it. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys that licenses are judged by. */
  readonly licenseKeys: JSONWebKeySet;
}

/** What the operator brings along itself; it is in no user's spec. */
export interface ServerImage {
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never" | undefined;
  /** The OpenTelemetry Collector's contrib distribution; absent: the one that the tests know. */
  readonly collectorImage?: string;
  /** Pods run as the image's own user and group; false: as the cluster assigns them. True unless given. */
  readonly fixedUserIds?: boolean;
}
