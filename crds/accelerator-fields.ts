import { Type } from "typebox";
import { labelValuePattern, ObjectName, qualifiedNames } from "./fields.ts";
import { atomicList, rules } from "./keywords.ts";

/** The devices that a replica asks for. */

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
