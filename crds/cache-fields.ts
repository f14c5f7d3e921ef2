import { Type } from "typebox";
import { Image, ObjectName, quantityPattern } from "./fields.ts";
import { mapList, rules } from "./keywords.ts";

/** The schema of `cache`: where the files of a model come from, and where they are stored. */

export const ModelSource = Type.Object(
  {
    url: Type.String({
      minLength: 8,
      maxLength: 1024,
      pattern: "^(https?|s3|hf|oci)://[^\\s@]+(@[^\\s@]+)?$",
      description:
        "`https://HOST/PATH`, `s3://BUCKET/KEY`, `hf://OWNER/REPOSITORY[@REVISION][/PATH]` or `oci://REGISTRY/REPOSITORY[:TAG|@DIGEST]`. Without a path, every file of the repository is fetched.",
    }),
    path: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        pattern: "^[^/\\\\][^\\\\]*$",
        description:
          "Name of the file in the cache, or of the folder for several files. If it is absent, the names of the source are kept.",
      }),
    ),
    sha256: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: "^[0-9a-f]{64}$",
        description:
          "Expected SHA-256 digest of a source that is one file. A file with another digest is rejected.",
      }),
    ),
    endpoint: Type.Optional(
      Type.String({
        maxLength: 512,
        pattern: "^https?://[^\\s@]+$",
        description:
          "An S3-compatible store, a mirror of Hugging Face, or a registry, to use instead of the public service.",
      }),
    ),
    secretRef: Type.Optional(
      Type.Object(
        { name: ObjectName("Name of the Secret.") },
        {
          description:
            "Secret whose keys become environment variables with credentials: FETCH_AUTHORIZATION (the whole header), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, HF_TOKEN, OCI_USERNAME, OCI_PASSWORD.",
        },
      ),
    ),
  },
  {
    ...rules(
      {
        rule: "!self.url.startsWith('http://') || has(self.sha256)",
        message:
          "cache.sources[].sha256 is required for an http:// URL, because plain HTTP does not protect the file from changes: add the digest, or use https://",
        fieldPath: ".sha256",
      },
      {
        rule: "!self.url.matches('^https?://[^/]*@')",
        message:
          "cache.sources[].url must not contain a user name or a password: put them into the Secret of secretRef",
        fieldPath: ".url",
      },
    ),
  },
);

export const Cache = Type.Object(
  {
    name: Type.Optional(
      ObjectName(
        "Name of a TtsModelCache in the same namespace. The pods mount its volume. A new pool starts its pods when the cache is filled.",
      ),
    ),
    imageVolume: Type.Optional(
      Type.Object(
        {
          reference: Image("OCI image or artifact that contains the model's files."),
          pullPolicy: Type.Enum(["Always", "IfNotPresent", "Never"], {
            default: "IfNotPresent",
            description: "When the image is pulled, as in a container's imagePullPolicy.",
          }),
        },
        {
          description:
            "An image that is mounted as a volume. It requires Kubernetes and a container runtime with support for image volumes.",
        },
      ),
    ),
    persistentVolumeClaim: Type.Optional(
      Type.Object(
        { claimName: ObjectName("Name of the claim, in the same namespace.") },
        {
          description:
            "A volume that outlives the pods, and that all replicas share. One replica fetches the files while the others wait. With several replicas the volume must be ReadWriteMany, or all replicas must run on one node.",
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
              description: "Highest size of the volume, for example `20Gi`.",
            }),
          ),
        },
        {
          description:
            "A temporary volume on the node, with the lifetime of the pod. Each pod fetches the files again.",
        },
      ),
    ),
    sources: Type.Optional(
      Type.Array(ModelSource, {
        minItems: 1,
        maxItems: 8,
        ...mapList("url"),
        description:
          "Sources that are fetched into the cache, in this order, before the model starts. An interrupted transfer is resumed, digests are verified, and existing files are not fetched again. A long transfer needs a longer rollout.progressDeadlineSeconds.",
      }),
    ),
  },
  {
    description:
      "The model's files, mounted read-only at /var/lib/svc-tts/models, where the model tier looks for voices (SVC_TTS_VOICES_DIR).",
    ...rules(
      {
        rule: "[has(self.name), has(self.imageVolume), has(self.persistentVolumeClaim), has(self.emptyDir)].filter(given, given).size() == 1",
        message: "cache must have exactly one of name, imageVolume, persistentVolumeClaim and emptyDir",
      },
      {
        rule: "!has(self.name) || !has(self.sources)",
        message: "cache.name must not have sources: the TtsModelCache has its own sources",
        fieldPath: ".sources",
      },
      {
        rule: "!has(self.imageVolume) || !has(self.sources)",
        message: "cache.imageVolume must not have sources: an image is read-only",
        fieldPath: ".sources",
      },
      {
        rule: "!has(self.emptyDir) || has(self.sources)",
        message: "cache.emptyDir needs sources: the volume is empty when the pod starts",
        fieldPath: ".emptyDir",
      },
    ),
  },
);
