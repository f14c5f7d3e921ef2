import type { JSONWebKeySet } from "jose";

/** The settings of the operator that affect children. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys that licenses are evaluated with. If there is none, no license is required. */
  readonly licenseKeys: JSONWebKeySet;
}

/** The images for specs that name none. */
export interface ServerImage {
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never" | undefined;
  /** The contrib distribution of the OpenTelemetry Collector. The default is the tested version. */
  readonly collectorImage?: string;
  /** Whether pods run as the user and group of the image (the default), or as those that the cluster assigns. */
  readonly fixedUserIds?: boolean;
}
