import { type Static, Type } from "typebox";
import { ProfileAccelerator } from "./accelerator-fields.ts";
import { Downloads } from "./downloads-fields.ts";
import {
  dnsLabelPattern,
  FixedUserIds,
  Image,
  ImagePullPolicy,
  ImagePullSecrets,
  PriorityClassName,
  ProfileName,
  replicasLimit,
  ServiceType,
  TopologySpread,
} from "./fields.ts";
import { mapList, setList } from "./keywords.ts";
import { TelemetrySchema } from "./telemetry.ts";

/**
 * The schema of `TtsClass`: defaults and limits that an administrator sets for TtsDeployments. The class is
 * cluster-scoped.
 */

const Defaults = Type.Object(
  {
    images: Type.Optional(
      Type.Object(
        {
          api: Type.Optional(Image("Default of `api.image`.")),
          mist: Type.Optional(Image("Default of `models[].image` for pools of kind mist.")),
          arcana: Type.Optional(Image("Default of `models[].image` for pools of kind arcana.")),
        },
        { description: "Default images of the containers." },
      ),
    ),
    imagePullSecrets: Type.Optional({
      ...ImagePullSecrets,
      description:
        "Default of `imagePullSecrets`: Secrets in the namespace of the TtsDeployment that hold credentials for the image registry.",
    }),
    imagePullPolicy: Type.Optional({
      ...ImagePullPolicy,
      description: "Default of `imagePullPolicy`: when the images of the API and model pods are pulled.",
    }),
    fixedUserIds: Type.Optional({
      ...FixedUserIds,
      description:
        "Default of `fixedUserIds`: with `false` the cluster assigns user, group and fsGroup of the pods, as OpenShift requires. The pods comply with the Pod Security Standard `restricted` in both cases.",
    }),
    priorityClassName: Type.Optional({
      ...PriorityClassName,
      description: "Default of `api.priorityClassName` and `models[].priorityClassName`.",
    }),
    replicas: Type.Optional(
      Type.Integer({
        ...replicasLimit,
        description:
          "Default of `models[].replicas` for pools without `scaling`. The operator then sets the number of replicas, and `kubectl scale` has no effect.",
      }),
    ),
    topologySpread: Type.Optional({
      ...TopologySpread,
      description: "Default of `availability.topologySpread`.",
    }),
    telemetry: Type.Optional({
      ...TelemetrySchema,
      description: "Default of `telemetry`. Its Secrets are read in the namespace of the TtsDeployment.",
    }),
    downloads: Type.Optional({
      ...Downloads,
      description:
        "Default of `downloads` of TtsDeployments and TtsModelCaches. Its ConfigMap is read in their namespace.",
    }),
  },
  {
    default: {},
    description:
      "Values for fields that a TtsDeployment does not set. A field of the TtsDeployment replaces the whole default.",
  },
);

const AcceleratorProfile = Type.Object({
  name: ProfileName("Name of the profile, for example `l4` or `h100-mig-1g`."),
  accelerator: ProfileAccelerator,
});

const ImagePrefix = (description: string) =>
  Type.String({ minLength: 1, maxLength: 512, pattern: "^[^\\s]+$", description });

const Names = (description: string, pattern: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 254, pattern }), {
    maxItems: 64,
    ...setList,
    description,
  });

const Sum = (description: string) => Type.Integer({ minimum: 0, maximum: 100_000, description });

const Limits = Type.Object(
  {
    allowedNamespaces: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 63, pattern: dnsLabelPattern }), {
        maxItems: 512,
        ...setList,
        description: "Namespaces whose TtsDeployments may use the class.",
      }),
    ),
    allowedHostnames: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 253,
          pattern: "^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        }),
        {
          maxItems: 64,
          ...setList,
          description:
            "Host names that `api.route.hostnames` may contain. `*.example.com` allows every name that ends in `.example.com`.",
        },
      ),
    ),
    allowedServiceTypes: Type.Optional(
      Type.Array(ServiceType, {
        maxItems: 3,
        ...setList,
        description: "Types that `api.service.type` may have.",
      }),
    ),
    allowedAnnotations: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 317,
          pattern: "^([A-Za-z0-9][-._/A-Za-z0-9]*)?\\*?$",
        }),
        {
          maxItems: 64,
          ...setList,
          description:
            "Names of annotations that `api.service`, `api.route.ingress` and `podTemplate` may contain. An asterisk at the end allows every name with this beginning, for example `service.beta.kubernetes.io/*`.",
        },
      ),
    ),
    allowedImages: Type.Optional(
      Type.Array(ImagePrefix("A registry, a repository or an image."), {
        maxItems: 64,
        ...setList,
        description:
          "Beginnings of the images that a TtsDeployment may name, for example `registry.example.com/speech`. A beginning matches whole parts of a name only, and a registry without a path matches only its own port.",
      }),
    ),
    allowedModelSources: Type.Optional(
      Type.Array(ImagePrefix("The beginning of a URL."), {
        maxItems: 64,
        ...setList,
        description:
          "Beginnings of the URLs that `models[].cache.sources` and the sources of a TtsModelCache may name, in `url` and in `endpoint`, for example `hf://hexgrad/` or `https://models.example.com/`. `preset:NAME` allows a preset of a TtsModelCache, and `preset` allows every preset. A beginning matches whole parts of a URL only.",
      }),
    ),
    allowedEnv: Type.Optional(
      Names(
        "Names of variables that `models[].env` may set, for example `LOG_LEVEL`. An asterisk at the end allows every name with this beginning.",
        "^[A-Za-z0-9_]*\\*?$",
      ),
    ),
    allowedSecrets: Type.Optional(
      Names(
        "Names of Secrets that any field of a TtsDeployment may contain, for example `tts-*`. An asterisk at the end allows every name with this beginning.",
        "^([a-z0-9][-.a-z0-9]*)?\\*?$",
      ),
    ),
    allowedClaims: Type.Optional(
      Names(
        "Names of PersistentVolumeClaims that `models[].cache` and `api.keys.sqlite` may contain. An asterisk at the end allows every name with this beginning.",
        "^([a-z0-9][-.a-z0-9]*)?\\*?$",
      ),
    ),
    podTemplate: Type.Optional(
      Type.Enum(["None", "Safe", "All"], {
        description:
          "Which fields `podTemplate` may contain: `None` allows no podTemplate; `Safe` allows labels, annotations, and the fields of a pod for its placement and its DNS (affinity, dnsConfig, nodeSelector, tolerations, topologySpreadConstraints); `All` allows every field. With `All` a podTemplate can replace images, so the other limits of pods have no effect.",
      }),
    ),
    accelerators: Type.Optional(
      Type.Enum(["Profiles", "All"], {
        description:
          "How a pool may request devices: `Profiles` allows only `models[].acceleratorProfile`; `All` also allows `models[].accelerator`.",
      }),
    ),
    maxReplicasPerNamespace: Type.Optional(
      Sum(
        "Highest number of API pods and model pods of all TtsDeployments of the class in one namespace. A pool counts with `replicas` or `scaling.maxReplicas`, and must have one of them.",
      ),
    ),
    maxGpusPerNamespace: Type.Optional(
      Sum(
        "Highest number of devices of all TtsDeployments of the class in one namespace: `accelerator.count` times the replicas. Claim templates are then refused, because the number of their devices is not known.",
      ),
    ),
  },
  {
    default: {},
    description:
      "What a TtsDeployment may set. A limit that is absent allows every value. Defaults and profiles of the class are always allowed, and count towards the sums.",
  },
);

export const TtsClassSpecSchema = Type.Object(
  {
    license: Type.Optional(
      Type.Object(
        {
          required: Type.Boolean({
            default: false,
            description:
              "Every TtsDeployment of the class needs a license, also if the operator does not require one (`license.scope: Classes` of the chart).",
          }),
        },
        { description: "License requirement of the class." },
      ),
    ),
    defaults: Defaults,
    acceleratorProfiles: Type.Array(AcceleratorProfile, {
      maxItems: 32,
      default: [],
      ...mapList("name"),
      description: "Accelerators by name. `models[].acceleratorProfile` selects one of them.",
    }),
    limits: Limits,
  },
  { description: "The defaults and limits of the class." },
);

export type TtsClassSpec = Static<typeof TtsClassSpecSchema>;
