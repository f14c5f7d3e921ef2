import type { TSchema } from "typebox";
import { api, defaultClassAnnotation } from "../config/contract/names.ts";
import { type CelRule, rules } from "./keywords.ts";
import { structural } from "./structural.ts";
import { TtsClassSpecSchema } from "./tts-class.ts";
import { deploymentNameRule, TtsDeploymentSpecSchema, TtsDeploymentStatusSchema } from "./tts-deployment.ts";
import { modelCacheNameRule, TtsModelCacheSpecSchema, TtsModelCacheStatusSchema } from "./tts-model-cache.ts";
import { TtsModelPoolSpecSchema, TtsModelPoolStatusSchema } from "./tts-model-pool.ts";

/** The CustomResourceDefinitions as values. `generate.ts` writes them as YAML. */

interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** Columns with a priority above 0 are shown only with `-o wide`. */
  readonly priority?: number;
}

interface Source {
  readonly names: {
    kind: string;
    plural: string;
    singular: string;
    shortNames: string[];
    categories: string[];
  };
  readonly description: string;
  /** The default is `Namespaced`. */
  readonly scope?: "Cluster";
  readonly spec: TSchema;
  /** The schema of the status, for kinds with a status. */
  readonly status?: TSchema;
  /**
   * The status of an object that no operator has reconciled yet. With observedGeneration -1, kstatus does not
   * report a new object as ready.
   */
  readonly unseen?: object;
  readonly objectRules: CelRule[];
  readonly scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
  readonly columns: Column[];
}

const age: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since the object was created.",
};

const ready = (field: "status" | "reason") => `.status.conditions[?(@.type=="Ready")].${field}`;

const ttsDeployment: Source = {
  names: {
    kind: "TtsDeployment",
    plural: "ttsdeployments",
    singular: "ttsdeployment",
    shortNames: ["ttsd"],
    categories: ["tts"],
  },
  description: "A text-to-speech service: an API tier and one pool of pods per model.",
  spec: TtsDeploymentSpecSchema,
  status: TtsDeploymentStatusSchema,
  unseen: {
    observedGeneration: -1,
    summary: { models: "", streams: "" },
    conditions: [],
    models: [],
    license: { state: "missing" },
  },
  objectRules: [deploymentNameRule],
  columns: [
    {
      name: "Ready",
      type: "string",
      jsonPath: ready("status"),
      description: "Whether the service runs as specified.",
    },
    {
      name: "License",
      type: "string",
      jsonPath: ".status.license.state",
      description: "State of the license.",
    },
    {
      name: "Models",
      type: "string",
      jsonPath: ".status.summary.models",
      description: "Number of ready pools, and number of all pools.",
    },
    {
      name: "Streams",
      type: "string",
      jsonPath: ".status.summary.streams",
      description: "Concurrent streams that the ready replicas can serve.",
    },
    {
      name: "Version",
      type: "string",
      jsonPath: ".status.version",
      description: "Version of the API image.",
    },
    age,
    {
      name: "Endpoint",
      type: "string",
      jsonPath: ".status.endpoint",
      description: "URL of the API inside the cluster.",
      priority: 1,
    },
    {
      name: "Reason",
      type: "string",
      jsonPath: ready("reason"),
      description: "Reason of the condition Ready.",
      priority: 1,
    },
  ],
};

const ttsModelPool: Source = {
  names: {
    kind: "TtsModelPool",
    plural: "ttsmodelpools",
    singular: "ttsmodelpool",
    shortNames: ["ttsmp"],
    categories: ["tts"],
  },
  description:
    "One pool of model pods of a TtsDeployment. The operator creates it. Scale it with `kubectl scale`.",
  spec: TtsModelPoolSpecSchema,
  status: TtsModelPoolStatusSchema,
  unseen: {
    observedGeneration: -1,
    replicas: 0,
    readyReplicas: 0,
    desiredReplicas: 0,
    capacity: { streams: 0 },
    selector: "",
    conditions: [],
  },
  objectRules: [],
  scale: {
    specReplicasPath: ".spec.replicas",
    statusReplicasPath: ".status.replicas",
    labelSelectorPath: ".status.selector",
  },
  columns: [
    { name: "Kind", type: "string", jsonPath: ".spec.kind", description: "Models that the pool serves." },
    {
      name: "Desired",
      type: "integer",
      jsonPath: ".spec.replicas",
      description: "Requested number of pods.",
    },
    {
      name: "Ready",
      type: "integer",
      jsonPath: ".status.readyReplicas",
      description: "Pods that accept requests.",
    },
    {
      name: "Streams",
      type: "integer",
      jsonPath: ".status.capacity.streams",
      description: "Concurrent streams that the ready replicas can serve.",
    },
    {
      name: "Revision",
      type: "string",
      jsonPath: ".status.currentRevision",
      description: "Revision that last rolled out completely.",
    },
    age,
    {
      name: "Reason",
      type: "string",
      jsonPath: ready("reason"),
      description: "Reason of the condition Ready.",
      priority: 1,
    },
  ],
};

const ttsClass: Source = {
  names: {
    kind: "TtsClass",
    plural: "ttsclasses",
    singular: "ttsclass",
    shortNames: ["ttsc"],
    categories: ["tts"],
  },
  description:
    "Defaults and limits for TtsDeployments, which an administrator sets. A TtsDeployment names its class in `spec.className`. Otherwise the default class of the cluster applies.",
  scope: "Cluster",
  spec: TtsClassSpecSchema,
  objectRules: [],
  columns: [
    {
      name: "Default",
      type: "string",
      jsonPath: `.metadata.annotations.${defaultClassAnnotation.replaceAll(".", "\\.")}`,
      description: "Whether the class is the default class of the cluster.",
    },
    age,
  ],
};

const ttsModelCache: Source = {
  names: {
    kind: "TtsModelCache",
    plural: "ttsmodelcaches",
    singular: "ttsmodelcache",
    shortNames: ["ttsmc"],
    categories: ["tts"],
  },
  description:
    "Model files on a volume, which the operator fetches once and which several pools share. A pool names the cache in `cache.name`.",
  spec: TtsModelCacheSpecSchema,
  status: TtsModelCacheStatusSchema,
  unseen: {
    observedGeneration: -1,
    phase: "Pending",
    summary: { files: "", bytes: "" },
    users: [],
    conditions: [],
  },
  objectRules: [modelCacheNameRule],
  columns: [
    { name: "Phase", type: "string", jsonPath: ".status.phase", description: "Phase of the cache." },
    {
      name: "Files",
      type: "string",
      jsonPath: ".status.summary.files",
      description: "Number of complete files, and number of all files.",
    },
    {
      name: "Bytes",
      type: "string",
      jsonPath: ".status.summary.bytes",
      description: "Size of the fetched part, and size of all files.",
    },
    age,
    {
      name: "Claim",
      type: "string",
      jsonPath: ".status.claimName",
      description: "PersistentVolumeClaim with the files.",
      priority: 1,
    },
    {
      name: "Reason",
      type: "string",
      jsonPath: ready("reason"),
      description: "Reason of the condition Ready.",
      priority: 1,
    },
  ],
};

export const definitions = [
  define(ttsDeployment),
  define(ttsModelPool),
  define(ttsClass),
  define(ttsModelCache),
];

function define(source: Source) {
  const { plural } = source.names;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${api.group}` },
    spec: {
      group: api.group,
      scope: source.scope ?? "Namespaced",
      names: { ...source.names, listKind: `${source.names.kind}List` },
      versions: [
        {
          name: api.version,
          served: true,
          storage: true,
          ...(source.status && {
            subresources: { status: {}, ...(source.scale ? { scale: source.scale } : {}) },
          }),
          additionalPrinterColumns: source.columns,
          schema: { openAPIV3Schema: objectSchema(source) },
        },
      ],
    },
  };
}

function objectSchema(source: Source) {
  return {
    type: "object",
    description: source.description,
    required: ["spec"],
    properties: {
      apiVersion: { type: "string", description: "Version of the schema of this object." },
      kind: { type: "string", description: "The kind of this object." },
      metadata: { type: "object" },
      spec: structural(source.spec),
      ...(source.status && { status: { ...structural(source.status), default: source.unseen } }),
    },
    ...(source.objectRules.length > 0 ? rules(...source.objectRules) : {}),
  };
}
