import { licenseKey } from "../../config/contract/names.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** The objects that a command is about. */
export interface AdviceContext {
  readonly deployment: TtsDeployment;
  /** The name of the pod that the message is about, if any. */
  readonly pod: string | undefined;
  readonly container: string | undefined;
  /** The names of the TtsModelCaches that the message is about. */
  readonly modelCaches: readonly string[];
}

const inspectLicense = "svc-tts license inspect --license license.jwt --jwks jwks.json";

type Commands = (about: AdviceContext) => readonly string[];

const placeholder = "POD";
const inNamespace = ({ deployment }: AdviceContext) => `kubectl -n ${deployment.metadata.namespace}`;

const describePod: Commands = (about) => [
  `${inNamespace(about)} describe pod ${about.pod ?? placeholder}`,
  ...(about.pod === undefined ? [listPods(about)] : []),
];

function listPods(about: AdviceContext): string {
  return `${inNamespace(about)} get pods -l tts.svc.dev/deployment=${about.deployment.metadata.name}`;
}

function logs(about: AdviceContext, flags: string): string {
  const container = about.container === undefined ? "" : ` -c ${about.container}`;
  return `${inNamespace(about)} logs ${about.pod ?? placeholder}${container} ${flags}`.trimEnd();
}

const nameLicense: Commands = (about) => {
  const spec = { license: { secretRef: { name: "tts-license" } } };
  return [
    `${inNamespace(about)} create secret generic tts-license --from-file=${licenseKey}`,
    `${inNamespace(about)} patch ttsd ${about.deployment.metadata.name} --type=merge -p '${JSON.stringify({ spec })}'`,
  ];
};

const replaceLicense: Commands = (about) => {
  const { license } = about.deployment.spec;
  if (license === undefined) return nameLicense(about);
  const { name, key } = license.secretRef;
  const secret = `create secret generic ${name} --from-file=${key}=license.jwt`;
  return [
    inspectLicense,
    `${inNamespace(about)} ${secret} --dry-run=client -o yaml | ${inNamespace(about)} apply -f -`,
  ];
};

const createKeys: Commands = (about) => [
  "svc-tts keys create --name first --file keys.yaml",
  `${inNamespace(about)} create secret generic ${about.deployment.spec.api.keys?.secretRef?.name ?? "tts-keys"} --from-file=keys.yaml`,
];

const createPassword: Commands = (about) => {
  const { name = "tts-database", key = "password" } =
    about.deployment.spec.api.keys?.postgres?.secretRef ?? {};
  return [`${inNamespace(about)} create secret generic ${name} --from-file=${key}=password.txt`];
};

const inspectPools: Commands = (about) => [
  `${inNamespace(about)} get ttsmp -l tts.svc.dev/deployment=${about.deployment.metadata.name}`,
  inspectLicense,
];

const describeModelCaches: Commands = (about) =>
  about.modelCaches.map((name) => `${inNamespace(about)} describe ttsmc ${name}`);

const freeDevices =
  "kubectl get nodes -o custom-columns='NODE:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu'";

/**
 * Commands by the reason of a condition. For other reasons, the output contains only the message of the
 * condition, which includes the remedy.
 */
const commands: Readonly<Record<string, Commands>> = {
  Missing: replaceLicense,
  Invalid: replaceLicense,
  Expired: replaceLicense,
  Revoked: replaceLicense,
  Unconfirmed: (about) => [
    `${inNamespace(about)} logs deploy/${about.deployment.metadata.name}-api | grep issuer`,
    `${inNamespace(about)} get networkpolicy`,
  ],
  ModelNotLicensed: inspectPools,
  TooManyGpus: inspectPools,
  TooManyStreams: inspectPools,
  LicenseHold: inspectPools,
  KeysSecretMissing: createKeys,
  DatabaseSecretMissing: createPassword,
  ModelCacheNotFound: (about) => [...describeModelCaches(about), `${inNamespace(about)} get ttsmc`],
  ModelCacheNotReady: describeModelCaches,
  NoGpu: (about) => [freeDevices, ...describePod(about)],
  Unschedulable: describePod,
  ImagePullFailed: describePod,
  ContainerConfigError: describePod,
  NotStarted: describePod,
  CrashLoop: (about) => [logs(about, "--previous"), ...describePod(about)],
  FetchingModel: (about) => [logs(about, "--follow")],
  PodsNotReady: (about) => (about.pod === undefined ? [listPods(about)] : describePod(about)),
  RollingOut: (about) => [`${listPods(about)} --watch`],
  ProgressDeadlineExceeded: (about) => [listPods(about), ...describePod(about)],
  QuotaExceeded: (about) => [`${inNamespace(about)} describe resourcequota`],
  PodsRefused: (about) => [
    `${inNamespace(about)} describe deployment -l tts.svc.dev/deployment=${about.deployment.metadata.name}`,
  ],
  AdmissionDenied: () => [
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies",
  ],
  WebhookUnreachable: () => ["kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"],
  ClassLimitExceeded: ({ deployment: { spec } }) => [
    spec.className === undefined
      ? "kubectl get ttsclasses -o yaml"
      : `kubectl get ttsclass ${spec.className} -o yaml`,
  ],
  ClassNotFound: () => ["kubectl get ttsclasses"],
  ClassesUnreadable: () => [
    "kubectl get clusterroles,clusterrolebindings -l app.kubernetes.io/name=tts-operator",
  ],
  CrdMismatch: () => ["kubectl apply --server-side -f crds/"],
  RevisionNotFound: ({ deployment: { metadata } }) => [
    `tts-operator history ${metadata.name} -n ${metadata.namespace}`,
  ],
  Suspended: (about) => [
    `${inNamespace(about)} patch ttsd ${about.deployment.metadata.name} --type=merge -p '{"spec":{"suspend":false}}'`,
  ],
  NoOperator: () => [
    "helm list --all-namespaces --filter tts-operator",
    "helm upgrade --install tts-operator charts/tts-operator --namespace svc-tts-system --create-namespace",
  ],
  OperatorNotReady: () => [
    "kubectl get pods --all-namespaces -l app.kubernetes.io/name=tts-operator",
    "kubectl -n svc-tts-system logs -l app.kubernetes.io/name=tts-operator --tail=50",
  ],
};

/**
 * Returns commands that show details or solve the problem. It returns no command if the message of the
 * condition is sufficient.
 */
export function adviceFor(reason: string, about: AdviceContext): readonly string[] {
  return commands[reason]?.(about) ?? [];
}
