/** Reasons of the condition LicenseValid. In the condition Ready, these reasons have the prefix `License`. */
const licenseReasons = [
  "Valid",
  "NotRequired",
  "Missing",
  "Invalid",
  "Expired",
  "Revoked",
  "Unconfirmed",
  "ModelNotLicensed",
  "TooManyGpus",
  "TooManyStreams",
] as const;

/**
 * Every other reason of a condition that the operator sets. docs/reference/conditions.md and
 * docs/reference/conditions-model-cache.md explain each reason.
 */
const otherReasons = [
  "AcceleratorUnused",
  "Accepted",
  "AdmissionDenied",
  "ApplyFailed",
  "AtMaximum",
  "AwaitingMaintenanceWindow",
  "Canary",
  "CanaryAborted",
  "CanaryErrors",
  "CanaryFailed",
  "CanaryFirstAudio",
  "CanaryRealTimeFactor",
  "ChildDeleting",
  "ClaimLost",
  "ClaimNotFound",
  "ClaimPending",
  "ClassLimitExceeded",
  "ClassNotFound",
  "ClassesUnreadable",
  "ClockSkew",
  "Complete",
  "Configured",
  "ContainerConfigError",
  "CrashLoop",
  "CrdMismatch",
  "Creating",
  "Current",
  "DatabaseSecretMissing",
  "DigestMismatch",
  "DiskFull",
  "External",
  "FetchFailed",
  "FetchInterrupted",
  "Fetched",
  "Fetching",
  "FetchingModel",
  "FieldsLost",
  "Following",
  "GatewayApiMissing",
  "HistoryUnreadable",
  "ImagePullFailed",
  "InUse",
  "KedaMissing",
  "KeysSecretMissing",
  "LicenseHold",
  "LoadUnknown",
  "ModelCacheNotFound",
  "ModelCacheNotReady",
  "MonitorsNotInstalled",
  "Mountable",
  "NameTaken",
  "NoGpu",
  "NotManaged",
  "NotStarted",
  "OperatorChanged",
  "OperatorConflict",
  "PodTemplateInvalid",
  "PodsNotReady",
  "PodsRefused",
  "PresetUnknown",
  "ProgressDeadlineExceeded",
  "Progressing",
  "QuotaExceeded",
  "RevisionNotFound",
  "RollingOut",
  "ScaleToZeroRefused",
  "ScaledToZero",
  "ScalerFailed",
  "SecretMissing",
  "Serving",
  "Settled",
  "SingleNodeClaim",
  "Stalled",
  "Starting",
  "Suspended",
  "Trading",
  "UnknownFields",
  "Unschedulable",
  "WebhookUnreachable",
] as const;

export const conditionReasons = [...licenseReasons, ...otherReasons] as const;

export type LicenseReason = (typeof licenseReasons)[number];

/** A reason that another controller reported, or that an earlier reconcile wrote to a status. */
type ReportedReason = string & { readonly isReported: true };

export type ConditionReason = (typeof conditionReasons)[number] | `License${LicenseReason}` | ReportedReason;

export function reportedReason(reason: string): ReportedReason {
  return reason as ReportedReason;
}
