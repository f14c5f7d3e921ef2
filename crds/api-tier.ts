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
  ServiceType,
} from "./fields.ts";
import { rules, setList } from "./keywords.ts";
import { ApiRollout } from "./rollout-fields.ts";
import { Behavior } from "./scaling.ts";

/** The schema of `spec.api`: the API tier, which clients call. */

const ApiScaling = Type.Object(
  {
    maxReplicas: Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: "Highest number of API pods. The lowest number is api.replicas.",
    }),
    target: Type.Object(
      {
        streamsPerReplica: Type.Integer({
          minimum: 1,
          maximum: 10_000,
          default: 100,
          description:
            "Streams, in progress or queued, for each API pod. The operator adds pods above this number.",
        }),
      },
      { default: {}, description: "The load that one API pod should carry." },
    ),
    behavior: Type.Optional(Behavior),
  },
  {
    description:
      "Scales the API pods by the number of streams of all models together. A pod that is removed finishes its streams first.",
  },
);

const Service = Type.Object(
  {
    type: {
      ...ServiceType,
      default: "ClusterIP",
      description: "Type of the Service, as in a Kubernetes Service.",
    },
    annotations: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
      maxProperties: 32,
      default: {},
      description: "Annotations of the Service, for example for the settings of a cloud load balancer.",
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
        description: "Host name, for example `tts.example.com` or `*.example.com`.",
      }),
      { minItems: 1, maxItems: 16, ...setList, description: "Host names that are routed to the API." },
    ),
    gatewayRef: Type.Optional(
      Type.Object(
        {
          name: ObjectName("Name of the Gateway."),
          namespace: Type.Optional(
            ObjectName(
              "Namespace of the Gateway. If it is absent, the namespace of the TtsDeployment is used.",
            ),
          ),
          sectionName: Type.Optional(
            ObjectName(
              "Listener of the Gateway. If it is absent, the route attaches to every listener that allows it.",
            ),
          ),
        },
        { description: "The Gateway to which the operator attaches an HTTPRoute (Gateway API)." },
      ),
    ),
    ingress: Type.Optional(
      Type.Object(
        {
          className: Type.Optional(
            ObjectName("IngressClass. If it is absent, the cluster's default class is used."),
          ),
          annotations: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
            maxProperties: 32,
            default: {},
            description:
              "Annotations for the ingress controller. Streaming needs a controller that does not buffer responses and has a read timeout longer than the pause between two writes.",
            ...qualifiedNames("api.route.ingress.annotations", "annotations"),
          }),
          tlsSecretName: Type.Optional(
            ObjectName(
              "Secret with the TLS certificate of the host names. If it is absent, the API is served over plain HTTP, or with the controller's default certificate.",
            ),
          ),
        },
        {
          description: "The Ingress that the operator creates. With `{}` it has the cluster's default class.",
        },
      ),
    ),
  },
  {
    description:
      "Access to the API from outside the cluster. If it is absent, the API is reachable only by its Service.",
    ...rules({
      rule: "has(self.gatewayRef) != has(self.ingress)",
      message: "api.route must have exactly one of gatewayRef and ingress",
    }),
  },
);

const Tls = Type.Object(
  {
    secretName: ObjectName(
      "Secret of the type `kubernetes.io/tls` in the same namespace, with `tls.crt` and `tls.key`. The API pods wait until it exists, and use a changed certificate without a restart.",
    ),
  },
  {
    description:
      "TLS in the API pods themselves, at port 443 of the Service, for clients inside the cluster or without an Ingress or a Gateway. Plain HTTP stays at port 8000, for probes, metrics and the route.",
  },
);

const RateLimit = Type.Object(
  {
    requestsPerMinute: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          "Requests per minute for each key without a limit of its own. If it is absent, the requests of these keys are not limited.",
      }),
    ),
    streams: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description:
          "Concurrent streams for each key without a limit of its own. If it is absent, the streams of these keys are not limited.",
      }),
    ),
    sockets: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          "WebSockets that each key may have open at one API pod. If it is absent, the limit is 1000. Valkey does not share this count.",
      }),
    ),
    socketsPerSecond: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          "WebSockets that each key may open at one API pod in a second. If it is absent, the limit is 100. Valkey does not share this count.",
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
              "`redis://host:6379`, or `rediss://` for TLS. The URL may contain a user name and a database number, but no password: put the password into secretRef.",
          }),
          secretRef: Type.Optional(
            SecretEntry("password", "The password. The API pods read it again for each connection."),
          ),
          caSecretRef: Type.Optional(
            SecretEntry(
              "ca.crt",
              "PEM certificate of the authority that signed the server's certificate. If it is absent, the system's authorities are trusted.",
            ),
          ),
        },
        {
          description:
            "Valkey or Redis, in which the API pods share their counts. If it is absent or not reachable, each API pod counts separately.",
        },
      ),
    ),
  },
  {
    description:
      "Limits for each API key. A key may have its own limits of requests and streams, which override these limits. The limits of WebSockets apply to every key.",
  },
);

const Sqlite = Type.Object(
  {
    persistentVolumeClaim: Type.Object(
      {
        claimName: ObjectName(
          "Name of the claim, in the same namespace. Create it yourself: the operator neither creates nor deletes it.",
        ),
      },
      {
        description:
          "The volume of the database file. It must be a disk: SQLite does not work reliably on a network file system.",
      },
    ),
  },
  {
    description:
      "Stores API keys and words in an SQLite file on a volume. It allows only one API pod. An update stops the old pod before it starts the new pod, so the API is unavailable in between.",
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
        "`postgres://user@host:5432/name?sslmode=verify-full`. sslmode is `verify-full`, or, on a trusted network, `no-verify` or `disable`. The URL must not contain a password: put the password into secretRef.",
    }),
    secretRef: Type.Optional(
      SecretEntry("password", "The password. The API pods read it again for each connection."),
    ),
    caSecretRef: Type.Optional(
      SecretEntry(
        "ca.crt",
        "PEM certificate of the authority that signed the server's certificate, read when an API pod starts. If it is absent, the system's authorities are trusted.",
      ),
    ),
  },
  {
    description:
      "Stores API keys and words in PostgreSQL, for any number of API pods. The API pods create the tables.",
    ...rules(
      {
        rule: "self.url.contains('?sslmode=')",
        message:
          "api.keys.postgres.url must end in ?sslmode=verify-full or, on a trusted network, in ?sslmode=no-verify or ?sslmode=disable",
        fieldPath: ".url",
      },
      {
        rule: "!has(self.caSecretRef) || self.url.endsWith('?sslmode=verify-full')",
        message:
          "api.keys.postgres.caSecretRef needs ?sslmode=verify-full in api.keys.postgres.url: other modes do not verify certificates",
      },
    ),
  },
);

const Keys = Type.Object(
  {
    secretRef: Type.Optional(
      Type.Object(
        {
          name: ObjectName("Name of the Secret. Its key `keys.yaml` contains the digests of the API keys."),
        },
        { description: "Secret in the same namespace with read-only API keys." },
      ),
    ),
    sqlite: Type.Optional(Sqlite),
    postgres: Type.Optional(Postgres),
  },
  {
    description:
      "The API keys that clients may use: read-only keys of a Secret, keys of a database, or both. If it is absent, every request is rejected.",
    ...rules(
      {
        rule: "has(self.secretRef) || has(self.sqlite) || has(self.postgres)",
        message: "api.keys must have secretRef, sqlite or postgres",
      },
      {
        rule: "!(has(self.sqlite) && has(self.postgres))",
        message: "api.keys must not have both sqlite and postgres: keys are stored in one database",
      },
    ),
  },
);

const OidcGroup = Type.Object(
  {
    group: Type.String({ minLength: 1, maxLength: 253, description: "Name of the group, as in the claim." }),
    role: Type.Enum(["owner", "member", "viewer"], { description: "Role of the group's users." }),
    team: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: "^[A-Za-z0-9][A-Za-z0-9 ._@:+-]*$",
        description:
          "Team whose API keys and words the users see. Required for members and viewers; an owner sees all teams.",
      }),
    ),
  },
  {
    description: "Maps a group of the provider to a role.",
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
      description:
        "Issuer URL of the provider, exactly as in its tokens, for example `https://login.example.com/realms/staff`.",
    }),
    clientId: Type.String({
      minLength: 1,
      maxLength: 253,
      description: "Client ID under which this server is registered with the provider.",
    }),
    clientSecretRef: Type.Optional(
      SecretEntry(
        "client-secret",
        "The client secret. The API pods read it again at each sign-in. If it is absent, the server is a public client.",
      ),
    ),
    caSecretRef: Type.Optional(
      SecretEntry(
        "ca.crt",
        "PEM certificate of the authority that signed the provider's certificate. If it is absent, the system's authorities are trusted.",
      ),
    ),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "Name of the provider on the sign-in page. If it is absent, its host name is shown.",
      }),
    ),
    scopes: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: 128,
          pattern: "^[A-Za-z0-9._:/-]+$",
          description: "OAuth scope, for example `profile`.",
        }),
        {
          minItems: 1,
          maxItems: 16,
          ...setList,
          description:
            "Scopes to request in addition to `openid`. If it is absent, `profile` and `email` are requested.",
        },
      ),
    ),
    groupsClaim: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        description: "The claim that lists a user's groups. If it is absent, `groups` is used.",
      }),
    ),
    groups: Type.Array(OidcGroup, {
      maxItems: 64,
      default: [],
      description:
        "Groups whose users may sign in without an invitation. If a user is in several of them, the first one in this list applies.",
    }),
  },
  {
    description:
      "Sign-in with an OpenID Connect provider, in addition to passwords. The redirect URI is `/dashboard/oidc/callback` below `api.dashboard.url`.",
  },
);

const Dashboard = Type.Object(
  {
    url: Type.String({
      minLength: 8,
      maxLength: 512,
      pattern: `^https?://${host}${port}$`,
      description:
        "URL at which users open the dashboard, without a path, for example `https://tts.example.com`. `http` is only for `localhost` and `127.0.0.1`.",
    }),
    setupSecretRef: Type.Optional(
      SecretEntry(
        "token",
        "A long random text that allows the first owner to register at `/dashboard/setup?token=…`. It has no effect once an owner exists; remove it then.",
      ),
    ),
    oidc: Type.Optional(Oidc),
  },
  {
    description: "The dashboard, at `/dashboard` of the API. If it is absent, the dashboard is disabled.",
    ...rules({
      rule: "self.url.startsWith('https://') || self.url.matches('^http://(localhost|127[.]0[.]0[.]1)(:|$)')",
      message:
        "api.dashboard.url must be an https URL, because http does not encrypt passwords: http is allowed only for localhost and 127.0.0.1",
      fieldPath: ".url",
    }),
  },
);

export const Api = Type.Object(
  {
    image: Type.Optional(
      Image(
        "Image of the API container. If it is absent, the operator selects the image of its own version.",
      ),
    ),
    replicas: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 1,
      description: "Number of API pods. With scaling, the lowest number.",
    }),
    scaling: Type.Optional(ApiScaling),
    resources: Resources("Resources of the API container.", { cpu: "100m", memory: "128Mi" }),
    priorityClassName: Type.Optional(PriorityClassName),
    podTemplate: Type.Optional(PodTemplate),
    drain: Drain,
    rollout: Type.Optional(ApiRollout),
    service: Service,
    tls: Type.Optional(Tls),
    route: Type.Optional(Route),
    keys: Type.Optional(Keys),
    dashboard: Type.Optional(Dashboard),
    rateLimit: Type.Optional(RateLimit),
    trustedProxies: Type.Optional(
      Type.Array(Cidr("Network of proxies, for example `10.0.0.0/8`."), {
        maxItems: 16,
        ...setList,
        description:
          "Networks of the ingress controller or load balancer whose `X-Forwarded-For` header is trusted. If it is empty, the dashboard's limit of sign-in attempts counts all users behind a proxy as one.",
      }),
    ),
  },
  {
    default: {},
    description: "The API tier: the pods that clients call.",
    ...rules(
      {
        rule: "!has(self.scaling) || self.replicas <= self.scaling.maxReplicas",
        message: "api.replicas must not exceed api.scaling.maxReplicas",
        fieldPath: ".replicas",
      },
      {
        rule: "!has(self.keys) || !has(self.keys.sqlite) || (self.replicas == 1 && !has(self.scaling))",
        message:
          "api.keys.sqlite allows one API pod only: set api.replicas to 1 and leave api.scaling out, or use api.keys.postgres",
      },
      {
        rule: "!has(self.dashboard) || (has(self.keys) && (has(self.keys.sqlite) || has(self.keys.postgres)))",
        message: "api.dashboard needs api.keys.sqlite or api.keys.postgres, which store its users and keys",
      },
    ),
  },
);
