import type { JSONWebKeySet } from "jose";
import { requiresLicense } from "../../config/contract/license.ts";
import type { TtsClassSpec } from "../../crds/tts-class.ts";

export type LicenseScope = "All" | "Classes";

/** Returns whether a TtsDeployment needs a license. */
export function needsLicense({
  licenseKeys,
  licenseScope = "All",
  classRequiresLicense = false,
}: LicenseSettings): boolean {
  return classRequiresLicense || (licenseScope === "All" && requiresLicense(licenseKeys));
}

export type LicenseSettings = Pick<Settings, "licenseKeys" | "licenseScope" | "classRequiresLicense">;

export type PullPolicy = "Always" | "IfNotPresent" | "Never";

/** The settings of the operator that affect children. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys with which licenses are verified. Without a key, no license is required. */
  readonly licenseKeys: JSONWebKeySet;
  /**
   * Which TtsDeployments need a license if a key is trusted: all of them, or only those of classes with
   * `license.required`. The default is `All`.
   */
  readonly licenseScope?: LicenseScope;
  /** Whether the class of the TtsDeployment that is reconciled requires a license. */
  readonly classRequiresLicense?: boolean;
  /**
   * The defaults and limits of an operator that watches single namespaces, because it cannot read TtsClasses. They
   * apply to every TtsDeployment.
   */
  readonly class?: TtsClassSpec | undefined;
}

/** The default images of pods, and settings that depend on the images. */
export interface ServerImage {
  readonly image: string;
  readonly pullPolicy: PullPolicy | undefined;
  /** Image of the OpenTelemetry Collector (contrib distribution). The default is the tested version. */
  readonly collectorImage?: string;
  /** Pull policy of `collectorImage`. It does not apply to an image that a TtsDeployment names. */
  readonly collectorPullPolicy?: PullPolicy;
  /**
   * Whether pods run with the user and group of the image. If it is false, the cluster assigns user and
   * group. The default is true.
   */
  readonly fixedUserIds?: boolean;
}
