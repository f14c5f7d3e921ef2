import { Type } from "typebox";
import { arcanaEngines, modelKinds } from "../config/contract/models.ts";
import { arcanaEnv, env, generatorEnv } from "../config/contract/names.ts";
import { vllmFlagsWithoutValue, vllmFlagsWithValue } from "../config/contract/vllm-flags.ts";
import { anyFields, mapList, rules } from "./keywords.ts";

/**
 * Parts of the schema that `TtsDeployment` and `TtsModelPool` share. `kubectl explain` shows every
 * description.
 */

export const quantityPattern =
  "^[+]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[mkMGTPEnu]|[eE][+-]?[0-9]+)?$";
export const dnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const secretNamePattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
/** The key of a Secret or ConfigMap. It becomes a file name, so `.` and `..` are not allowed. */
const keyPattern = "^\\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";
export const labelValuePattern = "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$";

/** Returns a rule for the keys of a map, because a structural schema has no pattern for map keys. */
export const qualifiedNames = (field: string, of: "labels" | "annotations") =>
  rules({
    rule: "self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$'))",
    message: `the keys of ${field} must be names of ${of}, for example example.com/name`,
  });

/** A key in a Secret. */
export const Key = (description: string, defaultKey?: string) =>
  Type.String({
    minLength: 1,
    maxLength: 253,
    pattern: keyPattern,
    description,
    ...(defaultKey !== undefined && { default: defaultKey }),
  });

export const ObjectName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 253, pattern: secretNamePattern, description });

const Quantity = Type.Union([
  Type.Integer({ minimum: 0 }),
  Type.String({ maxLength: 32, pattern: quantityPattern }),
]);

/**
 * A map of resources without devices: the license does not count devices in `resources`, and `accelerator`
 * would overwrite them.
 */
const Quantities = (description: string) =>
  Type.Record(Type.String(), Quantity, {
    maxProperties: 16,
    description,
    ...rules({
      rule: "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-'))",
      message:
        "resources may contain cpu, memory, ephemeral-storage and hugepages-…: request devices with accelerator",
    }),
  });

export const Resources = (
  description: string,
  requests?: Record<string, string>,
  limits?: Record<string, string>,
) =>
  Type.Object(
    {
      requests: Type.Optional(
        Quantities("Resources that the scheduler reserves, for example `cpu: 500m` or `memory: 1Gi`."),
      ),
      limits: Type.Optional(Quantities("Resources that the container may use at most.")),
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

export const ImagePullPolicy = Type.Enum(["Always", "IfNotPresent", "Never"], {
  description:
    "When the images of the API and model pods are pulled. If it is absent, the operator's setting applies to its own images, and the default of Kubernetes to other images.",
});

export const FixedUserIds = Type.Boolean({
  description:
    "Whether the pods run as user, group and fsGroup 65532. With `false` the cluster assigns these IDs, as OpenShift requires. If it is absent, the operator's setting applies.",
});

/** A reference to one entry of a Secret in the same namespace. The default of its key is `usualKey`. */
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
      optional: Type.Optional(
        Type.Boolean({ description: "Start the container even if the key does not exist." }),
      ),
    },
    { description: `A key of a ${what} in the same namespace.` },
  );

/** The operator sets these variables. Other values would break the probes, the drain or the license check. */
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
    value: Type.Optional(Type.String({ maxLength: 1024, description: "Value of the variable." })),
    valueFrom: Type.Optional(
      Type.Object(
        {
          secretKeyRef: Type.Optional(KeyRef("Secret")),
          configMapKeyRef: Type.Optional(KeyRef("ConfigMap")),
        },
        {
          description: "Source of the value: a key of a Secret or of a ConfigMap.",
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
        message: "env must not have both value and valueFrom",
      },
      {
        rule: `!(self.name in [${reservedVariables.map((name) => `'${name}'`).join(", ")}])`,
        message:
          "env must not set a variable that the operator sets: use the field of the spec, for example maxConcurrentStreams or drain",
        fieldPath: ".name",
      },
    ),
  },
);

export const Env = Type.Array(Variable, {
  maxItems: 64,
  ...mapList("name"),
  description: "Additional environment variables of the model container.",
});

const vllmFlags = [...vllmFlagsWithValue, ...vllmFlagsWithoutValue];
const celList = (words: readonly string[]) => `[${words.map((word) => `'${word}'`).join(", ")}]`;
const foreignFlag = "engine.parameters must contain only allowed flags of vLLM, without the leading dashes";

const parameterRules = [
  {
    rule: `self.all(key, key in ${celList(vllmFlags)})`,
    message: foreignFlag,
    messageExpression: `'${foreignFlag}: ' + self.filter(key, !(key in ${celList(vllmFlags)}))[0] + ' is none of ${vllmFlags.join(", ")}'`,
  },
  {
    rule: `self.all(key, (self[key] == '') == (key in ${celList(vllmFlagsWithoutValue)}))`,
    message: `engine.parameters has an empty value for ${vllmFlagsWithoutValue.join(", ")}, and a value for every other flag`,
  },
];

/** The generator of a pool of `kind: arcana`, with the names of `SVC_TTS_ARCANA_GENERATOR`. */
export const EngineSchema = Type.Object(
  {
    type: Type.Enum([...arcanaEngines], {
      description:
        "`mini` is the small model that the image contains. `flite` uses the Flite engine without a model, so sampling options have no effect. `vllm` is the model of `cache`, which vLLM serves inside the pod; `image` must contain vLLM. `kokoro` is the Kokoro model of `cache`; requests with sampling options are rejected.",
    }),
    parameters: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 256, pattern: "^\\S*$" }), {
        maxProperties: 32,
        description:
          'Flags of vLLM for its computation, without the leading dashes, for example `gpu-memory-utilization: "0.9"`. Use an empty value for a flag without a value. The API server rejects flags that could run the code of a model, open files or open ports.',
        ...rules(...parameterRules),
      }),
    ),
  },
  {
    description:
      "The generator of an arcana pool. If it is absent, the image's own setting applies, which is `mini`.",
    ...rules({
      rule: "!has(self.parameters) || self.type == 'vllm'",
      message: "engine.parameters needs engine.type vllm: the parameters are flags of vLLM",
      fieldPath: ".parameters",
    }),
  },
);

/** Variables that `engine` sets. */
const engineVariables: readonly string[] = [env.arcanaGenerator, generatorEnv.vllmArgs];

export const engineRules = [
  {
    rule: "!has(self.engine) || self.kind == 'arcana'",
    message: "models[].engine needs kind arcana: for kind mist the voice selects the engine",
    fieldPath: ".engine",
  },
  {
    rule: `!has(self.engine) || !has(self.env) || !self.env.exists(v, v.name in ${celList(engineVariables)})`,
    message: `models[].env must not set ${engineVariables.join(" or ")} if engine is set: engine sets the variable`,
    fieldPath: ".env",
  },
  {
    rule: `!has(self.engine) || self.engine.type != 'kokoro' || has(self.cache) || (has(self.env) && self.env.exists(v, v.name == '${env.modelsDir}'))`,
    message: `models[].engine.type kokoro needs cache: the image does not contain the model. If a volume of podTemplate contains it, set ${env.modelsDir} in env`,
    fieldPath: ".cache",
  },
] as const;

const ownLabels = "!k.startsWith('tts.svc.dev/') && !k.startsWith('app.kubernetes.io/')";

const PodLabels = Type.Record(Type.String(), Type.String({ maxLength: 63, pattern: labelValuePattern }), {
  maxProperties: 32,
  description: "Labels that are added to the pods.",
  ...rules(...qualifiedNames("podTemplate.metadata.labels", "labels")["x-kubernetes-validations"], {
    rule: `self.all(k, ${ownLabels})`,
    message:
      "podTemplate.metadata.labels must not contain labels of the operator (tts.svc.dev/…, app.kubernetes.io/…), which select the pods",
  }),
});

const PodAnnotations = Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
  maxProperties: 32,
  description: "Annotations that are added to the pods.",
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
            "Fields of a pod's spec, for example `affinity` or `containers`. Use the name `api`, `mist` or `arcana` to change the operator's container, and another name to add one. `$patch: replace` and `$patch: delete` remove content.",
        },
      ),
    ),
  },
  {
    description:
      "Merged over the operator's pod template by the rules of `kubectl patch --type=strategic`: containers, volumes and variables are merged by name, other lists are replaced. Request devices with accelerator.",
  },
);

export const PriorityClassName = ObjectName(
  "PriorityClass of the pods, for example `speech`. If it is absent, the cluster's default is used.",
);

export const SharedMemory = Type.String({
  minLength: 1,
  maxLength: 32,
  pattern: quantityPattern,
  description:
    "Size of /dev/shm, for example `2Gi`. Used shared memory counts as memory of the container. If it is absent, the size is 2Gi with an accelerator, and the container runtime's default (64Mi) without.",
});

export const TopologySpread = Type.Array(
  Type.Object({
    topologyKey: Type.String({
      minLength: 1,
      maxLength: 317,
      pattern: "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
      description:
        "Node label whose values are the domains, for example `kubernetes.io/hostname` or `topology.kubernetes.io/zone`.",
    }),
    maxSkew: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 1,
      description: "Highest allowed difference in pods between the fullest and the emptiest domain.",
    }),
    whenUnsatisfiable: Type.Enum(["ScheduleAnyway", "DoNotSchedule"], {
      default: "ScheduleAnyway",
      description:
        "Whether a pod that would exceed maxSkew is scheduled nevertheless (`ScheduleAnyway`) or stays pending (`DoNotSchedule`).",
    }),
  }),
  {
    maxItems: 4,
    ...mapList("topologyKey"),
    description:
      "How the pods of the API tier and the pods of each pool are spread over nodes and zones. Each revision is spread separately.",
  },
);

export const DisruptionBudget = Type.Object(
  {
    enabled: Type.Boolean({
      default: true,
      description: "Create a PodDisruptionBudget for the API tier and one for each pool.",
    }),
    maxUnavailable: Type.Union(
      [
        Type.Integer({ minimum: 1, maximum: 1000 }),
        Type.String({ maxLength: 4, pattern: "^(100|[1-9][0-9]?)%$" }),
      ],
      {
        default: 1,
        description:
          "Number or percentage of the pods of one tier that node drains may evict at once, for example 1 or 25% (rounded up). The minimum is 1, so that a single replica never blocks a drain.",
      },
    ),
  },
  { default: {}, description: "Limits how many pods node drains may evict at once." },
);

export const Drain = Type.Object(
  {
    maxStreamSeconds: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: 300,
      description:
        "Highest time in seconds that a running stream may take to finish when its pod is stopped.",
    }),
    endpointDelaySeconds: Type.Integer({
      minimum: 1,
      maximum: 60,
      default: 5,
      description:
        "Seconds for which a stopping pod still accepts requests, until load balancers have removed it.",
    }),
  },
  {
    default: {},
    description: "How pods stop: load balancers remove them first, then they finish their streams.",
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
        description: "Seconds to wait before the first probe.",
      }),
      periodSeconds: Type.Integer({
        minimum: 1,
        maximum: 300,
        default: defaults.periodSeconds,
        description: "Seconds between two probes.",
      }),
      failureThreshold: Type.Integer({
        minimum: 1,
        maximum: 1000,
        default: defaults.failureThreshold,
        description: "Consecutive failures after which the probe has failed.",
      }),
      timeoutSeconds: Type.Integer({
        minimum: 1,
        maximum: 60,
        default: defaults.timeoutSeconds,
        description: "Seconds to wait for the response to one probe.",
      }),
    },
    { default: {}, description },
  );

export const ProbesSchema = Type.Object(
  {
    startup: Probe(
      "The startup probe. The other probes start after it succeeded. periodSeconds times failureThreshold is the longest time that a model may take to load.",
      {
        periodSeconds: 2,
        failureThreshold: 300,
        timeoutSeconds: 5,
      },
    ),
    readiness: Probe("The readiness probe, which decides whether the pod receives requests.", {
      periodSeconds: 3,
      failureThreshold: 2,
      timeoutSeconds: 3,
    }),
    liveness: Probe("The liveness probe, which decides whether the container is restarted.", {
      periodSeconds: 10,
      failureThreshold: 3,
      timeoutSeconds: 5,
    }),
  },
  { default: {}, description: "Timing of the probes. Their paths are fixed." },
);

export const PoolName = Type.String({
  minLength: 1,
  maxLength: 20,
  pattern: dnsLabelPattern,
  description: "Name of the pool. The names of its children contain it.",
  ...rules({
    rule: "self != 'api'",
    message: "models[].name must not be `api`: the children of the API tier have this name",
  }),
});

/** The name of an accelerator profile of a TtsClass. */
export const ProfileName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 63, pattern: dnsLabelPattern, description });

export const ServiceType = Type.Enum(["ClusterIP", "NodePort", "LoadBalancer"]);

export const Kind = Type.Enum([...modelKinds], {
  description:
    "Model container of the pool: `mist` serves the models mist and mistv2, `arcana` serves arcana.",
  ...rules({
    rule: "self == oldSelf",
    message: "kind of a pool must not change: add a pool under another name and remove this one",
  }),
});

export const MaxConcurrentStreams = Type.Integer({
  minimum: 1,
  maximum: 10_000,
  default: 16,
  description:
    "Highest number of concurrent streams of one replica. Further requests wait in its queue or are rejected.",
});

export const replicasLimit = { minimum: 0, maximum: 1000 } as const;

export const Cidr = (description: string) =>
  Type.String({
    minLength: 3,
    maxLength: 64,
    description,
    ...rules({ rule: "isCIDR(self)", message: "must be a network, for example 10.0.0.0/8 or 2001:db8::/32" }),
  });
