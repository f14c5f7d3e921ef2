import { Type } from "typebox";
import { modelKinds } from "../config/contract/models.ts";
import { arcanaEnv, env, generatorEnv } from "../config/contract/names.ts";
import { anyFields, mapList, rules } from "./keywords.ts";

/** Pieces of schema that `TtsDeployment` and `TtsModelPool` share. Every description is shown by `kubectl explain`. */

export const quantityPattern =
  "^[+]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[mkMGTPEnu]|[eE][+-]?[0-9]+)?$";
export const dnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const secretNamePattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
/** Of a Secret or ConfigMap; it becomes a file's name, so `.` and `..` are none. */
const keyPattern = "^\\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";
export const labelValuePattern = "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$";

/** Map keys have no pattern of their own in a structural schema. */
export const qualifiedNames = (field: string, of: "labels" | "annotations") =>
  rules({
    rule: "self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$'))",
    message: `the keys of ${field} must be names of ${of}, as example.com/name`,
  });

/** A key in a Secret. */
export const Key = (description: string, otherwise?: string) =>
  Type.String({
    minLength: 1,
    maxLength: 253,
    pattern: keyPattern,
    description,
    ...(otherwise !== undefined && { default: otherwise }),
  });

export const ObjectName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 253, pattern: secretNamePattern, description });

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

export const Resources = (
  description: string,
  requests?: Record<string, string>,
  limits?: Record<string, string>,
) =>
  Type.Object(
    {
      requests: Type.Optional(Quantities("What the scheduler reserves, as `cpu: 500m` or `memory: 1Gi`.")),
      limits: Type.Optional(Quantities("The most that the container may use.")),
    },
    {
      description,
      default: { ...(requests && { requests }), ...(limits && { limits }) },
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

/** One entry of a Secret in the same namespace, whose key has a usual name. */
export const SecretEntry = (usualKey: string, description: string) =>
  Type.Object(
    { name: ObjectName("Name of the Secret."), key: Key("Key in the Secret.", usualKey) },
    { description },
  );

const KeyRef = (what: string) =>
  Type.Object(
    {
      name: ObjectName(`Name of the ${what}.`),
      key: Key(`Key in the ${what}.`),
      optional: Type.Optional(Type.Boolean({ description: "Start although it is missing." })),
    },
    { description: `A key of a ${what} in the same namespace.` },
  );

/** Variables that the operator sets itself; a second author would break probes, drain or the license. */
export const reservedVariables: readonly string[] = [
  env.port,
  env.host,
  env.namespace,
  env.podName,
  env.tokenDir,
  env.maxConcurrentStreams,
  env.drainSeconds,
  env.voicesDir,
  arcanaEnv.vllmPort,
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

/** What speaks in a pool of `kind: arcana`, as `SVC_TTS_ARCANA_GENERATOR` names it. */
export const EngineSchema = Type.Object(
  {
    type: Type.Enum(["mini", "flite", "vllm"], {
      description:
        "`mini`: the small model that the image brings. `flite`: no model, so sampling options have no effect. `vllm`: the model of `cache`, which vLLM serves in the pod; `image` must have it.",
    }),
    parameters: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 256, pattern: "^\\S*$" }), {
        maxProperties: 32,
        description:
          'Flags of vLLM, without their dashes, as `gpu-memory-utilization: "0.9"`; an empty value for those that take none.',
        ...rules({
          rule: "self.all(key, key.matches('^[a-z0-9][a-z0-9-]{0,63}$'))",
          message:
            "the keys of engine.parameters must be flags of vLLM without their dashes, as max-model-len",
        }),
      }),
    ),
  },
  {
    description: "What speaks, in a pool of arcana. Absent: what the image is set to, which is `mini`.",
    ...rules({
      rule: "!has(self.parameters) || self.type == 'vllm'",
      message: "engine.parameters are flags of vLLM: they need engine.type vllm",
      fieldPath: ".parameters",
    }),
  },
);

/** Variables that `engine` sets. */
const engineVariables: readonly string[] = [env.arcanaGenerator, generatorEnv.vllmArgs];

export const engineRules = [
  {
    rule: "!has(self.engine) || self.kind == 'arcana'",
    message: "models[].engine is for kind arcana: what speaks mist follows from the voice",
    fieldPath: ".engine",
  },
  {
    rule: `!has(self.engine) || !has(self.env) || !self.env.exists(v, v.name in [${engineVariables.map((name) => `'${name}'`).join(", ")}])`,
    message: `models[].env must not set ${engineVariables.join(" or ")} where engine says it`,
    fieldPath: ".env",
  },
] as const;

const ownLabels = "!k.startsWith('tts.svc.dev/') && !k.startsWith('app.kubernetes.io/')";

const PodLabels = Type.Record(Type.String(), Type.String({ maxLength: 63, pattern: labelValuePattern }), {
  maxProperties: 32,
  description: "Labels added to the pods.",
  ...rules(...qualifiedNames("podTemplate.metadata.labels", "labels")["x-kubernetes-validations"], {
    rule: `self.all(k, ${ownLabels})`,
    message:
      "podTemplate.metadata.labels must not be those of the operator (tts.svc.dev/…, app.kubernetes.io/…), which select the pods",
  }),
});

const PodAnnotations = Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
  maxProperties: 32,
  description: "Annotations added to the pods.",
  ...qualifiedNames("podTemplate.metadata.annotations", "annotations"),
});

export const PodTemplate = Type.Object(
  {
    metadata: Type.Optional(
      Type.Object(
        { labels: Type.Optional(PodLabels), annotations: Type.Optional(PodAnnotations) },
        { description: "Labels and annotations of the pods." },
      ),
    ),
    spec: Type.Optional(
      Type.Object(
        {},
        {
          ...anyFields,
          description:
            "Fields of a pod's spec, as `affinity`, or `containers` with the names of ours (`api`, `mist`, `arcana`) or of more. `$patch: replace` and `$patch: delete` take things away.",
        },
      ),
    ),
  },
  {
    description:
      "Merged over the pods' own template, as `kubectl patch --type=strategic` does: containers, volumes and variables by their names, other lists as a whole. Devices are asked for by accelerator.",
  },
);

export const PriorityClassName = ObjectName(
  "PriorityClass of the pods, as `speech`; absent: the cluster's default.",
);

export const SharedMemory = Type.String({
  minLength: 1,
  maxLength: 32,
  pattern: quantityPattern,
  description:
    "Size of /dev/shm, as `2Gi`; what is used of it counts to the container's memory. Absent: 2Gi with an accelerator, else the container runtime's own (64Mi).",
});

export const TopologySpread = Type.Array(
  Type.Object({
    topologyKey: Type.String({
      minLength: 1,
      maxLength: 317,
      pattern: "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
      description:
        "Node label whose values are the domains, as `kubernetes.io/hostname` or `topology.kubernetes.io/zone`.",
    }),
    maxSkew: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 1,
      description: "How many pods the fullest domain may have more than the emptiest.",
    }),
    whenUnsatisfiable: Type.Enum(["ScheduleAnyway", "DoNotSchedule"], {
      default: "ScheduleAnyway",
      description: "Whether a pod that would break it is placed all the same, or waits.",
    }),
  }),
  {
    maxItems: 4,
    ...mapList("topologyKey"),
    description:
      "How the pods of the API, and those of each pool, spread over nodes and zones; each revision by itself.",
  },
);

export const DisruptionBudget = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: "Make a PodDisruptionBudget for the API tier and one for each pool.",
    }),
    maxUnavailable: Type.Union(
      [
        Type.Integer({ minimum: 1, maximum: 1000 }),
        Type.String({ maxLength: 4, pattern: "^(100|[1-9][0-9]?)%$" }),
      ],
      {
        default: 1,
        description:
          "Pods of one tier that drains of nodes may take at once, as 1 or 25% (rounded up): never none, so that one replica does not block every drain.",
      },
    ),
  },
  { default: {}, description: "How many pods may be taken by drains of nodes at once." },
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

export const ProbesSchema = Type.Object(
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

export const Kind = Type.Enum([...modelKinds], {
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

export const Cidr = (description: string) =>
  Type.String({
    minLength: 3,
    maxLength: 64,
    description,
    ...rules({ rule: "isCIDR(self)", message: "must be a network, as 10.0.0.0/8 or 2001:db8::/32" }),
  });
