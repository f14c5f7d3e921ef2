import { type Static, Type } from "typebox";
import { Toleration } from "./accelerator-fields.ts";
import { ModelSource } from "./cache-fields.ts";
import { Downloads } from "./downloads-fields.ts";
import {
  ImagePullSecrets,
  labelValuePattern,
  ObjectName,
  qualifiedNames,
  quantityPattern,
} from "./fields.ts";
import { atomicList, fixed, mapList, rules, setList } from "./keywords.ts";
import { Conditions } from "./status-fields.ts";

/** The schema of `TtsModelCache`: model files on a volume that several pools share. */

const NewClaim = Type.Object(
  {
    size: Type.String({
      minLength: 1,
      maxLength: 32,
      pattern: quantityPattern,
      description:
        "Requested size, for example `10Gi`. It may be increased later if the StorageClass supports it. A preset needs three times the size of its files during the installation.",
      ...rules({
        rule: "quantity(self).compareTo(quantity(oldSelf)) >= 0",
        message: "storage.claim.size must not decrease: Kubernetes cannot shrink a volume",
      }),
    }),
    storageClassName: Type.Optional(
      ObjectName("StorageClass of the claim. If it is absent, the default StorageClass applies."),
    ),
    accessModes: Type.Array(Type.Enum(["ReadWriteOnce", "ReadWriteMany"]), {
      minItems: 1,
      maxItems: 2,
      default: ["ReadWriteOnce"],
      ...setList,
      description:
        "Access modes of the claim. Pods on several nodes need `ReadWriteMany`; with `ReadWriteOnce` all pods must run on one node.",
    }),
  },
  {
    description: "The claim that the operator creates and that is deleted together with the TtsModelCache.",
    ...rules({
      rule: "self.accessModes == oldSelf.accessModes && has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
      message:
        "storage.claim.storageClassName and storage.claim.accessModes must not change: create another TtsModelCache instead",
    }),
  },
);

const Storage = Type.Object(
  {
    claim: Type.Optional(NewClaim),
    existingClaim: Type.Optional(
      Type.Object(
        { claimName: { ...ObjectName("Name of the claim."), ...fixed("storage.existingClaim.claimName") } },
        {
          description:
            "A claim in the same namespace that already exists, and that the operator never deletes. The pod that fetches the files must be able to write to it. Files that the TtsModelCache did not fetch are kept.",
        },
      ),
    ),
  },
  {
    description: "The volume for the files.",
    ...rules(
      {
        rule: "has(self.claim) != has(self.existingClaim)",
        message: "storage must have exactly one of claim and existingClaim",
      },
      {
        rule: "has(self.claim) == has(oldSelf.claim)",
        message:
          "storage must not change between claim and existingClaim: create another TtsModelCache instead",
      },
    ),
  },
);

export const TtsModelCacheSpecSchema = Type.Object(
  {
    className: Type.Optional(
      ObjectName(
        "Name of the TtsClass whose limits apply to the sources. If it is absent, the default TtsClass of the cluster applies, if there is one.",
      ),
    ),
    preset: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        pattern: "^[a-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
        description:
          "Model of the server's list, for example `kokoro-82m`. `svc-tts models list` lists the models. Its sources and digests are part of the server.",
      }),
    ),
    acceptLicense: Type.Optional(
      Type.Boolean({
        description:
          "Confirms that you comply with the license of the preset. It is required for presets whose license does not allow commercial use.",
      }),
    ),
    sources: Type.Optional(
      Type.Array(ModelSource, {
        minItems: 1,
        maxItems: 8,
        ...mapList("url"),
        description:
          "Sources that are fetched into the cache. An interrupted transfer is resumed, digests are verified, and existing files are not fetched again. Files of a source that is removed from the list are removed after the others are complete.",
      }),
    ),
    storage: Storage,
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    nodeSelector: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 63, pattern: labelValuePattern }), {
        maxProperties: 16,
        description:
          "Labels that the node of the fetching pod must have. With `ReadWriteOnce` the pods of the pools later run on the same node.",
        ...qualifiedNames("nodeSelector", "labels"),
      }),
    ),
    tolerations: Type.Optional(
      Type.Array(Toleration, {
        maxItems: 16,
        ...atomicList,
        description: "Taints that the fetching pod tolerates.",
      }),
    ),
    downloads: Type.Optional(Downloads),
    networkPolicy: Type.Optional(
      Type.Object(
        {
          enabled: Type.Boolean({
            default: false,
            description:
              "Create a NetworkPolicy for the pods that fetch the files. They accept connections only from the operator, which reads their progress, and may connect only to DNS and to the ports of the sources. The cluster's network plugin must enforce NetworkPolicies.",
          }),
        },
        { description: "NetworkPolicy of the pods that fetch the files." },
      ),
    ),
  },
  {
    description: "The files and their volume.",
    ...rules({
      rule: "has(self.preset) || has(self.sources)",
      message: "spec must have preset, sources or both",
    }),
  },
);

const Count = (description: string) => Type.Integer({ minimum: 0, description });
/** Kubernetes numbers are 64-bit integers, so sizes of many GiB fit. */
const Bytes = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const Time = (description: string) => Type.String({ format: "date-time", maxLength: 64, description });

export const TtsModelCacheStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: -1,
      description:
        "Generation of the spec that this status describes. -1 means that no operator has reconciled the object.",
    }),
    phase: Type.Enum(["Pending", "Fetching", "Ready", "Failed"], {
      description:
        "`Pending`: the volume or the pod is not available yet. `Fetching`: the files are fetched. `Ready`: all files are complete. `Failed`: the last attempt failed, or a user must act.",
    }),
    summary: Type.Object(
      {
        files: Type.String({ maxLength: 32, description: "Number of complete files, and of all files." }),
        bytes: Type.String({ maxLength: 32, description: "Size of the fetched part, and of all files." }),
      },
      { description: "Values for the columns of `kubectl get`." },
    ),
    claimName: Type.Optional(
      Type.String({ maxLength: 253, description: "Name of the PersistentVolumeClaim with the files." }),
    ),
    progress: Type.Optional(
      Type.Object(
        {
          files: Count("Complete files."),
          totalFiles: Count("All files."),
          bytes: Bytes("Bytes of the complete files and of the file that is being fetched."),
          totalBytes: Type.Optional(
            Bytes("Bytes of all files. Absent while a source has not reported the size of a file."),
          ),
          bytesPerSecond: Bytes("Rate of the last seconds."),
        },
        {
          description:
            "Progress of the attempt that runs, as its pod last reported it. Absent while no attempt runs, or while the operator cannot reach the pod.",
        },
      ),
    ),
    fetched: Type.Optional(
      Type.Object(
        {
          contents: Type.String({ maxLength: 64, description: "Hash of the preset and the sources." }),
          claim: Type.String({ maxLength: 64, description: "UID of the claim." }),
          time: Time("Time at which the files were complete."),
          files: Count("Number of files."),
          bytes: Bytes("Size of the files."),
        },
        {
          description:
            "The last complete fetch. Pools may mount the volume when it is present, also while later changes are fetched.",
        },
      ),
    ),
    failure: Type.Optional(
      Type.Object(
        {
          generation: Type.Integer({ minimum: 0, description: "Generation of the spec of the attempt." }),
          attempts: Count("Failed attempts of this generation."),
          job: Type.String({ maxLength: 253, description: "Job of the last attempt." }),
          reason: Type.String({ maxLength: 256, description: "Machine-readable reason, in CamelCase." }),
          message: Type.String({ maxLength: 4096, description: "Explanation for users." }),
          time: Time("Time of the failure."),
          nextAttempt: Time("Time of the next attempt."),
        },
        { description: "The last failed attempt. Absent after a success." },
      ),
    ),
    users: Type.Array(Type.String({ maxLength: 253 }), {
      maxItems: 64,
      ...atomicList,
      description: "Pools that name the cache. The cache is deleted only when no pool names it.",
    }),
    conditions: Conditions,
  },
  { description: "The observed state of the cache." },
);

export type TtsModelCacheSpec = Static<typeof TtsModelCacheSpecSchema>;
export type TtsModelCacheStatus = Static<typeof TtsModelCacheStatusSchema>;

/**
 * The rule for the name of a `TtsModelCache`. The names of its claim and its Jobs contain it, and pods have
 * the name of their Job as a label, which has at most 63 characters.
 */
export const modelCacheNameRule = {
  rule: "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
  message:
    "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: the names of its claim and its Jobs contain it",
};
