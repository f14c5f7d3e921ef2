import { Type } from "typebox";
import { labelValuePattern, ObjectName, qualifiedNames } from "./fields.ts";
import { atomicList, rules } from "./keywords.ts";

/** The schema of `accelerator`: the GPU devices that a replica requests. */

export const Toleration = Type.Object(
  {
    key: Type.Optional(
      Type.String({
        maxLength: 316,
        description: "Taint key. If it is absent, the toleration matches every key.",
      }),
    ),
    operator: Type.Enum(["Equal", "Exists"], {
      default: "Equal",
      description:
        "How key and value are compared with the taint: `Equal` compares both, `Exists` only the key.",
    }),
    value: Type.Optional(
      Type.String({ maxLength: 63, description: "Taint value. Allowed only with operator Equal." }),
    ),
    effect: Type.Optional(
      Type.Enum(["NoSchedule", "PreferNoSchedule", "NoExecute"], {
        description: "Taint effect. If it is absent, the toleration matches every effect.",
      }),
    ),
    tolerationSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description:
          "Seconds for which the pod stays on a node with a NoExecute taint. If it is absent, the pod stays without a limit.",
      }),
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

const acceleratorProperties = {
  resourceName: Type.String({
    minLength: 3,
    maxLength: 316,
    pattern: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$",
    default: "nvidia.com/gpu",
    description:
      "Extended resource that a device plugin advertises, for example `nvidia.com/gpu` (whole devices) or `nvidia.com/gpu.shared` (time-sliced devices).",
  }),
  count: Type.Integer({
    minimum: 1,
    maximum: 64,
    default: 1,
    description:
      "Number of devices per replica. The license counts this number. With claimTemplateName, set it to the number of devices that the claim allocates.",
  }),
  mig: Type.Optional(
    Type.String({
      maxLength: 32,
      pattern: "^([1-9]c\\.)?[1-9]g\\.[0-9]{1,3}gb(\\.me(\\.all)?|\\.gfx)?$",
      description:
        "MIG profile, for example `1g.10gb`. Each replica then requests `nvidia.com/mig-1g.10gb` instead of whole devices. Requires the MIG strategy `mixed`.",
    }),
  ),
  claimTemplateName: Type.Optional(
    ObjectName(
      "ResourceClaimTemplate in the same namespace. Devices are then allocated by dynamic resource allocation instead of a device plugin.",
    ),
  ),
  nodeSelector: Type.Record(Type.String(), Type.String({ maxLength: 63, pattern: labelValuePattern }), {
    maxProperties: 16,
    default: {},
    description: "Labels that a node must have, for example `nvidia.com/gpu.product: NVIDIA-L4`.",
    ...qualifiedNames("accelerator.nodeSelector", "labels"),
  }),
  tolerations: Type.Array(Toleration, {
    maxItems: 16,
    default: [],
    ...atomicList,
    description:
      "Taints that the pods tolerate. A NoSchedule taint whose key is the resource name is always tolerated.",
  }),
  runtimeClassName: Type.Optional(ObjectName("RuntimeClass of the pods, for example `nvidia`.")),
};

const acceleratorRules = rules(
  {
    rule: "!has(self.mig) || !has(self.claimTemplateName)",
    message: "accelerator must not have both mig and claimTemplateName: the claim selects its own slices",
    fieldPath: ".mig",
  },
  {
    rule: "!has(self.mig) || self.resourceName == 'nvidia.com/gpu'",
    message: "accelerator.mig replaces resourceName: leave resourceName out",
    fieldPath: ".mig",
  },
  {
    rule: "!self.resourceName.endsWith('.shared') || self.count == 1",
    message:
      "accelerator.count must be 1 for a time-sliced device: requesting more shares does not allocate more of the device",
    fieldPath: ".count",
  },
);

export const Accelerator = Type.Object(acceleratorProperties, {
  description: "The GPU that each replica requests. If it is absent, the pool runs on CPU.",
  ...acceleratorRules,
});

export const ProfileAccelerator = Type.Object(acceleratorProperties, {
  description: "The value of `models[].accelerator` for pools that name the profile.",
  ...acceleratorRules,
});
