import { Type } from "typebox";
import { tiers } from "../config/contract/models.ts";
import { arcanaEnv, env, generatorEnv } from "../config/contract/names.ts";
import { anyFields, atomicList, mapList, rules, setList } from "./keywords.ts";

/** Pieces of schema that `TtsDeployment` and `TtsModelPool` share. Every description is shown by `kubectl explain`. */

/** As `Intl` spells them. */
const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

const quantityPattern = "^[+]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[mkMGTPEnu]|[eE][+-]?[0-9]+)?$";
export const dnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const secretNamePattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
/** Of a Secret or ConfigMap; it becomes a file's name, so `.` and `..` are none. */
const keyPattern = "^\\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";
const labelValuePattern = "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$";

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
export const Engine = Type.Object(
  {
    type: Type.Enum(["mini", "flite", "vllm"], {
      description:
        "`mini`: the small model that the image brings. `flite`: no model. `vllm`: the model of `cache`, which vLLM serves in the pod; `image` must have it.",
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
      description:
        "Extended resource that a device plugin advertises, as `nvidia.com/gpu` (whole devices) or `nvidia.com/gpu.shared` (time-shared ones).",
    }),
    count: Type.Integer({
      minimum: 1,
      maximum: 64,
      default: 1,
      description:
        "Devices per replica, and what the license counts for it; with claimTemplateName, how many the claim gives.",
    }),
    mig: Type.Optional(
      Type.String({
        maxLength: 32,
        pattern: "^([1-9]c\\.)?[1-9]g\\.[0-9]{1,3}gb(\\.me(\\.all)?|\\.gfx)?$",
        description:
          "MIG profile, as `1g.10gb`: the replica takes slices of that size in place of whole devices, `nvidia.com/mig-1g.10gb` (MIG strategy `mixed`).",
      }),
    ),
    claimTemplateName: Type.Optional(
      ObjectName(
        "ResourceClaimTemplate in the same namespace: devices come by dynamic resource allocation in place of a device plugin.",
      ),
    ),
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
  {
    description: "The GPU that a replica asks for. Absent: the pool runs on CPU.",
    ...rules(
      {
        rule: "!has(self.mig) || !has(self.claimTemplateName)",
        message: "accelerator takes mig or claimTemplateName, not both: a claim chooses its slices itself",
        fieldPath: ".mig",
      },
      {
        rule: "!has(self.mig) || self.resourceName == 'nvidia.com/gpu'",
        message: "accelerator.mig takes the place of resourceName: leave resourceName out",
        fieldPath: ".mig",
      },
      {
        rule: "!self.resourceName.endsWith('.shared') || self.count == 1",
        message: "accelerator.count must be 1 for a time-shared device: more shares give no more of it",
        fieldPath: ".count",
      },
    ),
  },
);

const Source = Type.Object(
  {
    url: Type.String({
      minLength: 8,
      maxLength: 1024,
      pattern: "^(https?|s3|hf|oci)://[^\\s@]+(@[^\\s@]+)?$",
      description:
        "`https://HOST/PATH`, `s3://BUCKET/KEY`, `hf://OWNER/REPOSITORY[@REVISION][/PATH]` or `oci://REGISTRY/REPOSITORY[:TAG|@DIGEST]`; without a path, every file of the repository.",
    }),
    path: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        pattern: "^[^/\\\\][^\\\\]*$",
        description: "Name of the file in the cache, or folder of the files. Absent: the source's own names.",
      }),
    ),
    sha256: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: "^[0-9a-f]{64}$",
        description: "Digest that the one file of the source must have; another file is not kept.",
      }),
    ),
    endpoint: Type.Optional(
      Type.String({
        maxLength: 512,
        pattern: "^https?://[^\\s@]+$",
        description:
          "An S3-compatible store, a mirror of Hugging Face or a registry in place of the public service.",
      }),
    ),
    secretRef: Type.Optional(
      Type.Object(
        { name: ObjectName("Name of the Secret.") },
        {
          description:
            "Secret with credentials as environment variables: FETCH_AUTHORIZATION (the whole header), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, HF_TOKEN, OCI_USERNAME, OCI_PASSWORD.",
        },
      ),
    ),
  },
  {
    ...rules(
      {
        rule: "!self.url.startsWith('http://') || has(self.sha256)",
        message:
          "cache.sources[].sha256 must be given where url is http://: nobody else vouches for the file",
        fieldPath: ".sha256",
      },
      {
        rule: "!self.url.matches('^https?://[^/]*@')",
        message: "cache.sources[].url must hold no user and password: put them into the Secret of secretRef",
        fieldPath: ".url",
      },
    ),
  },
);

export const Cache = Type.Object(
  {
    imageVolume: Type.Optional(
      Type.Object(
        {
          reference: Image("An OCI image or artifact whose files are the model."),
          pullPolicy: Type.Enum(["Always", "IfNotPresent", "Never"], {
            default: "IfNotPresent",
            description: "When it is pulled.",
          }),
        },
        {
          description:
            "An image mounted as a volume; Kubernetes and container runtime must know image volumes.",
        },
      ),
    ),
    persistentVolumeClaim: Type.Optional(
      Type.Object(
        { claimName: ObjectName("Name of the claim, in the same namespace.") },
        {
          description:
            "A volume that outlives pods. Replicas share it, one fetches and the others wait, so with several of them it must be ReadWriteMany or theirs one node.",
        },
      ),
    ),
    emptyDir: Type.Optional(
      Type.Object(
        {
          sizeLimit: Type.Optional(
            Type.String({
              maxLength: 32,
              pattern: quantityPattern,
              description: "The most that it may hold, as `20Gi`.",
            }),
          ),
        },
        { description: "The node's own disk, for as long as the pod lives: each pod fetches anew." },
      ),
    ),
    sources: Type.Optional(
      Type.Array(Source, {
        minItems: 1,
        maxItems: 8,
        ...mapList("url"),
        description:
          "What is fetched into the cache before the model starts, one after the other: resumed where it broke off, checked, and not fetched again where it is there. A long fetch needs a longer rollout.progressDeadlineSeconds.",
      }),
    ),
  },
  {
    description:
      "The model's files, mounted read-only at /var/lib/svc-tts/models, where the tier looks for voices (SVC_TTS_VOICES_DIR).",
    ...rules(
      {
        rule: "[has(self.imageVolume), has(self.persistentVolumeClaim), has(self.emptyDir)].filter(given, given).size() == 1",
        message: "cache must have exactly one of imageVolume, persistentVolumeClaim and emptyDir",
      },
      {
        rule: "!has(self.imageVolume) || !has(self.sources)",
        message: "cache.imageVolume takes no sources: an image cannot be written to",
        fieldPath: ".sources",
      },
      {
        rule: "!has(self.emptyDir) || has(self.sources)",
        message: "cache.emptyDir needs sources: it starts empty",
        fieldPath: ".emptyDir",
      },
    ),
  },
);

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

const SurgeOrUnavailable = (description: string, value: number) =>
  Type.Union(
    [
      Type.Integer({ minimum: 0, maximum: 1000 }),
      Type.String({ maxLength: 4, pattern: "^(100|[1-9]?[0-9])%$" }),
    ],
    { default: value, description },
  );

const Duration = (description: string, more: object) =>
  Type.String({
    minLength: 2,
    maxLength: 16,
    pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
    description,
    ...more,
  });

const MaintenanceWindow = Type.Object(
  {
    days: Type.Array(Type.Enum([...weekdays], { description: "A day on which the window opens." }), {
      minItems: 1,
      maxItems: 7,
      default: [...weekdays],
      ...setList,
      description: "Days on which it opens.",
    }),
    start: Type.String({
      maxLength: 5,
      pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$",
      description: "Local time at which it opens, as `02:30`.",
    }),
    duration: Duration("How long it stays open, as `2h` or `90m`; it may pass midnight.", {
      ...rules({
        rule: "duration(self) >= duration('10m') && duration(self) <= duration('24h')",
        message: "rollout.maintenanceWindow.duration must be 10m to 24h",
      }),
    }),
    timeZone: Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: "^[A-Za-z0-9_+/-]+$",
      default: "UTC",
      description: "Time zone of start, as `Europe/Berlin` (IANA).",
      ...rules({
        rule: "timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",
        message: "rollout.maintenanceWindow.timeZone must be a time zone, as Europe/Berlin or UTC",
      }),
    }),
  },
  {
    description:
      "When new settings may begin to roll out. They wait for it; what has begun is finished after it. Absent: at any time.",
  },
);

const Analysis = Type.Object(
  {
    intervalSeconds: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: 30,
      description: "Time between two looks at the metrics of the API pods.",
    }),
    minRequests: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      default: 20,
      description: "Streams that the canary must have spoken before it is judged, and before it is promoted.",
    }),
    maxErrorPercent: Type.Integer({
      minimum: 0,
      maximum: 100,
      default: 1,
      description: "Most of its streams that may fail; those retried elsewhere count too.",
    }),
    maxFirstAudioMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600_000,
        description: "Longest time to first audio, 95th percentile, as the API pods wait for it.",
      }),
    ),
    maxRealTimeFactorPercent: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description:
          "Highest real-time factor, 95th percentile, in percent: 80 is 0.8 s of work for 1 s of sound.",
      }),
    ),
  },
  { default: {}, description: "What the canary is judged by. One look that breaks a bound rolls it back." },
);

const Canary = Type.Object(
  {
    steps: Type.Array(
      Type.Object({
        weight: Type.Integer({
          minimum: 1,
          maximum: 99,
          description: "Percent of the pool's new streams that the canary takes.",
        }),
        pauseSeconds: Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 300,
          description: "How long it takes them before the next step.",
        }),
      }),
      {
        minItems: 1,
        maxItems: 10,
        ...atomicList,
        description: "One after the other; after the last the canary is promoted.",
      },
    ),
    analysis: Analysis,
  },
  {
    description:
      "Try new settings on a share of the streams first: in pods of their own, judged by the API pods' metrics, then promoted or rolled back. Absent: they roll out to all.",
    ...rules({
      rule: "self.steps.map(step, step.weight).isSorted() && self.steps.all(step, self.steps.exists_one(other, other.weight == step.weight))",
      message: "rollout.canary.steps must rise in weight",
      fieldPath: ".steps",
    }),
  },
);

const RolloutFields = {
  maxSurge: SurgeOrUnavailable(
    "How many pods beyond `replicas` a rollout may start, as 1 or 25%. The default starts the new pod before it drains the old one.",
    1,
  ),
  maxUnavailable: SurgeOrUnavailable(
    "How many pods below `replicas` a rollout may leave, as 1 or 25%. Set it to 1 and maxSurge to 0 to replace pods in place.",
    0,
  ),
  progressDeadlineSeconds: Type.Integer({
    minimum: 30,
    maximum: 86_400,
    default: 900,
    description: "A rollout without progress for this long is reported as stalled.",
  }),
  whenFull: Type.Enum(["Trade", "Wait"], {
    default: "Trade",
    description:
      "Where a new pod finds no room although it would fit where an old one runs: drain one old pod in exchange, or wait for room, as where nodes are added by themselves.",
  }),
  maintenanceWindow: Type.Optional(MaintenanceWindow),
  canary: Type.Optional(Canary),
};

export const Rollout = Type.Object(RolloutFields, {
  // written out: the API server holds a default to the rule below before it fills in the defaults inside
  default: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 900, whenFull: "Trade" },
  description: "How pods are replaced when the model's settings change.",
  ...rules({
    rule: "!(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
    message:
      "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could ever be replaced",
    fieldPath: ".maxSurge",
  }),
});

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
  {
    streams: Count("Streams that the ready replicas speak at once."),
    used: Type.Optional(
      Count("Streams that callers have on them, as last looked at; known of a pool with scaling."),
    ),
  },
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

/** How far the pool's new settings came on a share of its streams. */
export const CanaryStatus = Type.Object(
  {
    phase: Type.Enum(["Starting", "Analysing", "Promoting", "RolledBack"], {
      description:
        "Its pods start; it takes its share and is judged; all pods take over its settings; it was given up.",
    }),
    settings: Type.String({ maxLength: 64, description: "Hash of the settings that it tries." }),
    revision: Type.String({ maxLength: 64, description: "Revision that it tries." }),
    attempt: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Which attempt of this revision it is: its streams are counted as `revision-attempt`.",
      }),
    ),
    step: Type.Integer({ minimum: 0, description: "Index of its step." }),
    weight: Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Percent of the new streams that it takes.",
    }),
    since: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "When phase, step or weight last changed.",
    }),
    traded: Type.Integer({
      minimum: 0,
      description: "Pods of the pool that were drained to make room for those of the canary.",
    }),
    reason: Type.Optional(Type.String({ maxLength: 1024, description: "Why it was given up, in one word." })),
    message: Type.Optional(Type.String({ maxLength: 4096, description: "The same, in a sentence." })),
  },
  { description: "The canary, while there is one, and after it was rolled back." },
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

export const Cidr = (description: string) =>
  Type.String({
    minLength: 3,
    maxLength: 64,
    description,
    ...rules({ rule: "isCIDR(self)", message: "must be a network, as 10.0.0.0/8 or 2001:db8::/32" }),
  });
