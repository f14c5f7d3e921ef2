import { Type } from "typebox";
import {
  Cidr,
  Drain,
  Image,
  ObjectName,
  PodTemplate,
  PriorityClassName,
  qualifiedNames,
  Resources,
  SecretEntry,
} from "./fields.ts";
import { rules, setList } from "./keywords.ts";
import { Behavior } from "./scaling.ts";

/** `spec.api`: what callers talk to. */

const ApiScaling = Type.Object(
  {
    maxReplicas: Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: "Most API pods; api.replicas is the fewest.",
    }),
    target: Type.Object(
      {
        streamsPerReplica: Type.Integer({
          minimum: 1,
          maximum: 10_000,
          default: 100,
          description: "Streams, spoken or waiting, per API pod.",
        }),
      },
      { default: {}, description: "What an API pod is to bear." },
    ),
    behavior: Type.Optional(Behavior),
  },
  {
    description:
      "API pods follow the streams of all models together, counted by the operator. A pod that goes first finishes its streams.",
  },
);

const Service = Type.Object(
  {
    type: Type.Enum(["ClusterIP", "NodePort", "LoadBalancer"], {
      default: "ClusterIP",
      description: "How the API's Service is reached.",
    }),
    annotations: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
      maxProperties: 32,
      default: {},
      description: "Annotations of the Service, for a load balancer's settings.",
      ...qualifiedNames("api.service.annotations", "annotations"),
    }),
  },
  { default: {}, description: "The Service of the API tier." },
);

const Route = Type.Object(
  {
    hostnames: Type.Array(
      Type.String({
        minLength: 1,
        maxLength: 253,
        pattern: "^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        description: "A host name, as `tts.example.com` or `*.example.com`.",
      }),
      { minItems: 1, maxItems: 16, ...setList, description: "Host names that lead to the API." },
    ),
    gatewayRef: Type.Optional(
      Type.Object(
        {
          name: ObjectName("Name of the Gateway."),
          namespace: Type.Optional(ObjectName("Its namespace; absent: the one of the TtsDeployment.")),
          sectionName: Type.Optional(ObjectName("One of its listeners; absent: all that fit.")),
        },
        { description: "The Gateway that an HTTPRoute joins (Gateway API)." },
      ),
    ),
    ingress: Type.Optional(
      Type.Object(
        {
          className: Type.Optional(ObjectName("IngressClass; absent: the cluster's default.")),
          annotations: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
            maxProperties: 32,
            default: {},
            description:
              "Annotations for the ingress controller. Streams need one that passes bytes on at once and waits long enough for the next.",
            ...qualifiedNames("api.route.ingress.annotations", "annotations"),
          }),
          tlsSecretName: Type.Optional(
            ObjectName(
              "Secret with the certificate of the host names; absent: plain HTTP, or the controller's own.",
            ),
          ),
        },
        { description: "The Ingress that is made; `{}` is one of the cluster's default class." },
      ),
    ),
  },
  {
    description: "How callers outside the cluster reach the API. Absent: by the Service alone.",
    ...rules({
      rule: "has(self.gatewayRef) != has(self.ingress)",
      message: "api.route must have exactly one of gatewayRef and ingress",
    }),
  },
);

const RateLimit = Type.Object(
  {
    requestsPerMinute: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: "Requests a minute of a key that has no limit of its own; absent: no limit.",
      }),
    ),
    streams: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: "Streams at once of a key that has no limit of its own; absent: no limit.",
      }),
    ),
    valkey: Type.Optional(
      Type.Object(
        {
          url: Type.String({
            minLength: 9,
            maxLength: 512,
            pattern: "^rediss?://([A-Za-z0-9_.-]+@)?[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[0-9]{1,3})?$",
            description:
              "`redis://host:6379`, or `rediss://` with TLS; a user's name and the number of a database may be in it, a password may not.",
          }),
          secretRef: Type.Optional(SecretEntry("password", "Its password; read again for each connection.")),
          caSecretRef: Type.Optional(
            SecretEntry(
              "ca.crt",
              "Certificate of the authority that signed the server's, PEM; absent: the system's own.",
            ),
          ),
        },
        {
          description:
            "Valkey or Redis, where the API pods share their counts. Absent, or away: each pod counts for itself.",
        },
      ),
    ),
  },
  { description: "What one key may ask for; keys with limits of their own keep those." },
);

const Sqlite = Type.Object(
  {
    persistentVolumeClaim: Type.Object(
      { claimName: ObjectName("Name of the claim, in the same namespace; it is made by you, and kept.") },
      { description: "The volume of the file: a disk, no network file system." },
    ),
  },
  {
    description:
      "Keys and words in an SQLite file on a volume. One API pod then, which ends before the next begins: nobody is served meanwhile.",
  },
);

const Postgres = Type.Object(
  {
    url: Type.String({
      minLength: 14,
      maxLength: 512,
      pattern:
        "^postgres(ql)?://([A-Za-z0-9_.%-]+@)?[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9_.%-]+([?]sslmode=(disable|no-verify|verify-full))?$",
      description:
        "`postgres://user@host:5432/name?sslmode=verify-full`; sslmode is `disable` (as without it), `no-verify` or `verify-full`. A password may not be in it.",
    }),
    secretRef: Type.Optional(SecretEntry("password", "Its password; read again for each connection.")),
    caSecretRef: Type.Optional(
      SecretEntry(
        "ca.crt",
        "Certificate of the authority that signed the server's, PEM, read when an API pod starts; absent: the system's own.",
      ),
    ),
  },
  {
    description: "Keys and words in PostgreSQL, for any number of API pods. Tables are made in it.",
    ...rules({
      rule: "!has(self.caSecretRef) || self.url.endsWith('?sslmode=verify-full')",
      message:
        "api.keys.postgres.caSecretRef needs ?sslmode=verify-full in api.keys.postgres.url: nothing else is judged by it",
    }),
  },
);

const Keys = Type.Object(
  {
    secretRef: Type.Optional(
      Type.Object(
        {
          name: ObjectName("Name of the Secret; key `keys.yaml` holds the digests."),
        },
        { description: "A Secret in the same namespace." },
      ),
    ),
    sqlite: Type.Optional(Sqlite),
    postgres: Type.Optional(Postgres),
  },
  {
    description:
      "API keys that callers may use: those of a Secret, which nothing changes, of a database, or of both. Absent: no caller is let in.",
    ...rules(
      {
        rule: "has(self.secretRef) || has(self.sqlite) || has(self.postgres)",
        message: "api.keys must have secretRef, sqlite or postgres",
      },
      {
        rule: "!(has(self.sqlite) && has(self.postgres))",
        message: "api.keys takes sqlite or postgres, not both: keys are in one database",
      },
    ),
  },
);

const OidcGroup = Type.Object(
  {
    group: Type.String({ minLength: 1, maxLength: 253, description: "A group, as the claim names it." }),
    role: Type.Enum(["owner", "member", "viewer"], { description: "What its people may do." }),
    team: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: "^[A-Za-z0-9][A-Za-z0-9 ._@:+-]*$",
        description: "The team whose keys and words they see; an owner needs none.",
      }),
    ),
  },
  {
    description: "What the people of a group are let in as.",
    ...rules({
      rule: "has(self.team) || self.role == 'owner'",
      message: "api.dashboard.oidc.groups must name a team for members and viewers",
    }),
  },
);

const host = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const port = "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?";

const Oidc = Type.Object(
  {
    issuer: Type.String({
      minLength: 9,
      maxLength: 512,
      pattern: `^https://${host}${port}(/[A-Za-z0-9._~-]*)*$`,
      description: "URL of the provider, as its tokens name it: `https://login.example.com/realms/staff`.",
    }),
    clientId: Type.String({
      minLength: 1,
      maxLength: 253,
      description: "Name by which the provider knows this server.",
    }),
    clientSecretRef: Type.Optional(
      SecretEntry("client-secret", "Its secret there; read again at each sign-in. Absent: a public client."),
    ),
    caSecretRef: Type.Optional(
      SecretEntry(
        "ca.crt",
        "Certificate of the authority that signed the provider's, PEM; absent: the system's own.",
      ),
    ),
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: "As people know it; absent: its host." }),
    ),
    scopes: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 128,
          pattern: "^[A-Za-z0-9._:/-]+$",
          description: "A scope of OAuth.",
        }),
        {
          minItems: 1,
          maxItems: 16,
          ...setList,
          description: "What is asked for beside `openid`; absent: `profile` and `email`.",
        },
      ),
    ),
    groupsClaim: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        description: "The claim that names a person's groups; absent: `groups`.",
      }),
    ),
    groups: Type.Array(OidcGroup, {
      maxItems: 64,
      default: [],
      description: "Who is let in without an invitation. Of a person's groups the first in this list counts.",
    }),
  },
  {
    description:
      "Sign-in by an OpenID Connect provider beside passwords. Its redirect URI is `/dashboard/oidc/callback` below `api.dashboard.url`.",
  },
);

const Dashboard = Type.Object(
  {
    url: Type.String({
      minLength: 8,
      maxLength: 512,
      pattern: `^https?://${host}${port}$`,
      description: "Where people reach the API, as `https://tts.example.com`, without a path.",
    }),
    setupSecretRef: Type.Optional(
      SecretEntry(
        "token",
        "A long random text, by which the first owner is made at `/dashboard/setup?token=…`. Of no use once there is one; leave it out then.",
      ),
    ),
    oidc: Type.Optional(Oidc),
  },
  { description: "Pages for people at `/dashboard` of the API. Absent: none." },
);

export const Api = Type.Object(
  {
    image: Type.Optional(Image("Image of the API container; the operator's own version when absent.")),
    replicas: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 1,
      description: "API pods; with scaling, the fewest.",
    }),
    scaling: Type.Optional(ApiScaling),
    resources: Resources("Resources of the API container.", { cpu: "100m", memory: "128Mi" }),
    priorityClassName: Type.Optional(PriorityClassName),
    podTemplate: Type.Optional(PodTemplate),
    drain: Drain,
    service: Service,
    route: Type.Optional(Route),
    keys: Type.Optional(Keys),
    dashboard: Type.Optional(Dashboard),
    rateLimit: Type.Optional(RateLimit),
    trustedProxies: Type.Optional(
      Type.Array(Cidr("A network of proxies, as `10.0.0.0/8`."), {
        maxItems: 16,
        ...setList,
        description:
          "Networks of the ingress controller or load balancer, whose `X-Forwarded-For` is believed. Absent: callers behind a proxy count as one where the dashboard limits sign-ins.",
      }),
    ),
  },
  {
    default: {},
    description: "The API tier: what callers talk to.",
    ...rules(
      {
        rule: "!has(self.scaling) || self.replicas <= self.scaling.maxReplicas",
        message: "api.replicas must not exceed api.scaling.maxReplicas",
        fieldPath: ".replicas",
      },
      {
        rule: "!has(self.keys) || !has(self.keys.sqlite) || (self.replicas == 1 && !has(self.scaling))",
        message:
          "api.keys.sqlite takes one API pod: set api.replicas to 1 and leave api.scaling out, or use api.keys.postgres",
      },
      {
        rule: "!has(self.dashboard) || (has(self.keys) && (has(self.keys.sqlite) || has(self.keys.postgres)))",
        message: "api.dashboard needs api.keys.sqlite or api.keys.postgres: people and keys are kept there",
      },
    ),
  },
);
