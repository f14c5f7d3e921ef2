import { Type } from "typebox";
import { Image, ObjectName, quantityPattern } from "./fields.ts";
import { mapList, rules } from "./keywords.ts";

/** Where a model's files come from. */

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
