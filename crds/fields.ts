import { Type } from "typebox";
import { tiers } from "../config/contract/models.ts";
import { env } from "../config/contract/names.ts";
import { atomicList, mapList, rules } from "./keywords.ts";

/** Pieces of schema that `TtsDeployment` and `TtsModelPool` share. Every description is shown by `kubectl explain`. */

const quantityPattern = "^[+]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[mkMGTPEnu]|[eE][+-]?[0-9]+)?$";
const dnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const secretNamePattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
/** Of a Secret or ConfigMap; it becomes a file's name, so `.` and `..` are none. */
export const keyPattern = "^\\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";
const labelValuePattern = "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$";

/** Map keys have no pattern of their own in a structural schema. */
export const qualifiedNames = (field: string, of: "labels" | "annotations") =>
  rules({
    rule: "self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$'))",
    message: `the keys of ${field} must be names of ${of}, as example.com/name`,
  });

export const ObjectName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 253, pattern: secretNamePattern, description });

const KeyName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 253, pattern: keyPattern, description });

const Quantity = Type.Union([
  Type.Integer({ minimum: 0 }),
  Type.String({ maxLength: 32, pattern: quantityPattern }),
]);

/** A device named here would be counted by no license and be lost beside `accelerator`. */
const Quantities = (description: string) =>
  Type.Record(Type.String(), Quantity, {
    maxProperties: 16,
    description,
    ...rules({
      rule: "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-'))",
      message:
        "resources must be cpu, memory, ephemeral-storage or hugepages-…; a model asks for devices by accelerator",
    }),
  });

export const Resources = (description: string, requests?: Record<string, string>) =>
  Type.Object(
    {
      requests: Type.Optional(Quantities("What the scheduler reserves, as `cpu: 500m` or `memory: 1Gi`.")),
      limits: Type.Optional(Quantities("The most that the container may use.")),
    },
    {
      description,
      default: requests ? { requests } : {},
      ...rules({
        rule: "!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",
        message: "resources.requests must not exceed resources.limits",
        fieldPath: ".requests",
      }),
    },
  );

export const Image = (description: string) =>
  Type.String({ minLength: 1, maxLength: 512, pattern: "^[^\\s]+$", description });

export const ImagePullSecrets = Type.Array(Type.Object({ name: ObjectName("Name of a Secret.") }), {
  maxItems: 8,
  ...mapList("name"),
  description: "Secrets in the same namespace that hold credentials for the image registry.",
});

const KeyRef = (what: string) =>
  Type.Object(
    {
      name: ObjectName(`Name of the ${what}.`),
      key: KeyName(`Key in the ${what}.`),
      optional: Type.Optional(Type.Boolean({ description: "Start although it is missing." })),
    },
    { description: `A key of a ${what} in the same namespace.` },
  );

/** Variables that the operator sets itself; a second author would break probes, drain or the license. */
const reservedVariables: readonly string[] = [
  env.port,
  env.host,
  env.namespace,
  env.podName,
  env.tokenDir,
  env.maxConcurrentStreams,
  env.drainSeconds,
];

const Variable = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
      description: "Name of the variable.",
    }),
    value: Type.Optional(Type.String({ maxLength: 1024, description: "Its value." })),
    valueFrom: Type.Optional(
      Type.Object(
        {
          secretKeyRef: Type.Optional(KeyRef("Secret")),
          configMapKeyRef: Type.Optional(KeyRef("ConfigMap")),
        },
        {
          description: "Where the value comes from.",
          ...rules({
            rule: "has(self.secretKeyRef) != has(self.configMapKeyRef)",
            message: "valueFrom must name exactly one of secretKeyRef and configMapKeyRef",
          }),
        },
      ),
    ),
  },
  {
    ...rules(
      {
        rule: "!(has(self.value) && has(self.valueFrom))",
        message: "env takes value or valueFrom, not both",
      },
      {
        rule: `!(self.name in [${reservedVariables.map((name) => `'${name}'`).join(", ")}])`,
        message:
          "env must not set a variable that the operator sets; use the field for it, as maxConcurrentStreams or drain",
        fieldPath: ".name",
      },
    ),
  },
);

export const Env = Type.Array(Variable, {
  maxItems: 64,
  ...mapList("name"),
  description: "More environment variables for the model container.",
});

const Toleration = Type.Object(
  {
    key: Type.Optional(
      Type.String({ maxLength: 316, description: "Taint key; absent tolerates every key." }),
    ),
    operator: Type.Enum(["Equal", "Exists"], { default: "Equal", description: "How the value is compared." }),
    value: Type.Optional(Type.String({ maxLength: 63, description: "Taint value, with operator Equal." })),
    effect: Type.Optional(
      Type.Enum(["NoSchedule", "PreferNoSchedule", "NoExecute"], {
        description: "Absent tolerates every effect.",
      }),
    ),
    tolerationSeconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 86_400, description: "How long NoExecute is tolerated." }),
    ),
  },
  {
    ...rules(
      {
        rule: "has(self.key) || self.operator == 'Exists'",
        message: "tolerations without a key must have operator Exists",
        fieldPath: ".operator",
      },
      {
        rule: "!has(self.value) || self.operator == 'Equal'",
        message: "tolerations with operator Exists must have no value",
        fieldPath: ".value",
      },
      {
        rule: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        message: "tolerations.tolerationSeconds needs effect NoExecute",
        fieldPath: ".tolerationSeconds",
      },
    ),
  },
);

export const Accelerator = Type.Object(
  {
    resourceName: Type.String({
      minLength: 3,
      maxLength: 316,
      pattern: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
      default: "nvidia.com/gpu",
      description: "Extended resource that a device plugin advertises.",
    }),
    count: Type.Integer({ minimum: 1, maximum: 64, default: 1, description: "Devices per replica." }),
    nodeSelector: Type.Record(Type.String(), Type.String({ maxLength: 63, pattern: labelValuePattern }), {
      maxProperties: 16,
      default: {},
      description: "Labels that a node must carry.",
      ...qualifiedNames("accelerator.nodeSelector", "labels"),
    }),
    tolerations: Type.Array(Toleration, {
      maxItems: 16,
      default: [],
      ...atomicList,
      description:
        "Taints that the pods tolerate, beside NoSchedule of the resource itself, which they always do.",
    }),
    runtimeClassName: Type.Optional(ObjectName("RuntimeClass of the pods, as `nvidia`.")),
  },
  { description: "The GPU that a replica asks for. Absent: the pool runs on CPU." },
);

const SurgeOrUnavailable = (description: string, value: number) =>
  Type.Union(
    [
      Type.Integer({ minimum: 0, maximum: 1000 }),
      Type.String({ maxLength: 4, pattern: "^(100|[1-9]?[0-9])%$" }),
    ],
    { default: value, description },
  );

export const Rollout = Type.Object(
  {
    maxSurge: SurgeOrUnavailable(
      "How many pods beyond `replicas` a rollout may start, as 1 or 25%. The default starts the new pod before it drains the old one.",
      1,
    ),
    maxUnavailable: SurgeOrUnavailable(
      "How many pods below `replicas` a rollout may leave, as 1 or 25%. Set it to 1 and maxSurge to 0 where no GPU is spare.",
      0,
    ),
    progressDeadlineSeconds: Type.Integer({
      minimum: 30,
      maximum: 86_400,
      default: 900,
      description: "A rollout without progress for this long is reported as stalled.",
    }),
  },
  {
    // written out: the API server holds a default to the rule below before it fills in the defaults inside
    default: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 900 },
    description: "How pods are replaced when the model's settings change.",
    ...rules({
      rule: "!(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
      message:
        "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could ever be replaced",
      fieldPath: ".maxSurge",
    }),
  },
);

export const Drain = Type.Object(
  {
    maxStreamSeconds: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: 300,
      description: "The longest that a running stream may take to finish when its pod is stopped.",
    }),
    endpointDelaySeconds: Type.Integer({
      minimum: 1,
      maximum: 60,
      default: 5,
      description: "How long a stopping pod still takes new requests, while load balancers forget it.",
    }),
  },
  {
    default: {},
    description: "How pods stop: first forgotten by load balancers, then finishing their streams.",
  },
);

const Probe = (
  description: string,
  defaults: { periodSeconds: number; failureThreshold: number; timeoutSeconds: number },
) =>
  Type.Object(
    {
      initialDelaySeconds: Type.Integer({
        minimum: 0,
        maximum: 3600,
        default: 0,
        description: "Wait before the first probe.",
      }),
      periodSeconds: Type.Integer({
        minimum: 1,
        maximum: 300,
        default: defaults.periodSeconds,
        description: "Time between probes.",
      }),
      failureThreshold: Type.Integer({
        minimum: 1,
        maximum: 1000,
        default: defaults.failureThreshold,
        description: "Failures in a row that count.",
      }),
      timeoutSeconds: Type.Integer({
        minimum: 1,
        maximum: 60,
        default: defaults.timeoutSeconds,
        description: "Time for one answer.",
      }),
    },
    { default: {}, description },
  );

export const Probes = Type.Object(
  {
    startup: Probe(
      "Until it succeeds, nothing else is probed; period times threshold is the time to load a model.",
      {
        periodSeconds: 2,
        failureThreshold: 300,
        timeoutSeconds: 5,
      },
    ),
    readiness: Probe("Whether the pod gets requests.", {
      periodSeconds: 3,
      failureThreshold: 2,
      timeoutSeconds: 3,
    }),
    liveness: Probe("Whether the container is restarted.", {
      periodSeconds: 10,
      failureThreshold: 3,
      timeoutSeconds: 5,
    }),
  },
  { default: {}, description: "Timing of the probes; their routes are fixed." },
);

export const PoolName = Type.String({
  minLength: 1,
  maxLength: 20,
  pattern: dnsLabelPattern,
  description: "Name of the pool, part of its children's names.",
  ...rules({
    rule: "self != 'api'",
    message: "models[].name must not be `api`: the API tier's children are named so",
  }),
});

export const Kind = Type.Enum([...tiers], {
  description: "`mist` serves the models mist and mistv2, `arcana` serves arcana.",
  ...rules({
    rule: "self == oldSelf",
    message: "kind of a pool must not change: add a pool under another name and remove this one",
  }),
});

export const MaxConcurrentStreams = Type.Integer({
  minimum: 1,
  maximum: 10_000,
  default: 16,
  description: "Streams that one replica speaks at once; more wait or are refused.",
});

export const replicasLimit = { minimum: 0, maximum: 1000 } as const;

const Count = (description: string) => Type.Integer({ minimum: 0, description });

const Capacity = Type.Object(
  { streams: Count("Streams that the ready replicas speak at once.") },
  { description: "What the pool can take now." },
);

/** As `metav1.Condition`. */
export const Conditions = Type.Array(
  Type.Object({
    type: Type.String({ maxLength: 316, description: "What the condition is about." }),
    status: Type.Enum(["True", "False", "Unknown"], { description: "Whether it holds." }),
    observedGeneration: Type.Integer({ minimum: 0, description: "The generation that it was judged for." }),
    lastTransitionTime: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "When status last changed.",
    }),
    reason: Type.String({ minLength: 1, maxLength: 1024, description: "One word for programs." }),
    message: Type.String({ maxLength: 32_768, description: "A sentence for people, with what to do." }),
  }),
  { maxItems: 16, ...mapList("type"), description: "What holds and what does not." },
);

const Revision = (description: string) => Type.String({ maxLength: 64, description });

export const ReplicaCounts = {
  replicas: Count("Pods there are."),
  readyReplicas: Count("Pods that take requests."),
  currentRevision: Type.Optional(Revision("Revision of the pod template that last rolled out in full.")),
  updateRevision: Type.Optional(
    Revision("Revision that is rolling out; equal to currentRevision when done."),
  ),
  capacity: Capacity,
};
