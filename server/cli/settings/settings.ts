import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { defaultCheckSeconds } from "../../../config/contract/license-check.ts";
import { arcanaEngines, type ModelKind } from "../../../config/contract/models.ts";
import { jwksKey, licenseKey, env as names, paths, ports, tokenKey } from "../../../config/contract/names.ts";
import { voices } from "../../../config/contract/voices.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import { bodyCopies } from "../../api/request/body.ts";
import { type ApiLimits, defaultLimits } from "../../api/request/limits.ts";
import { podAccess, serviceAccountDir } from "../../api/upstream/kubernetes/connection.ts";
import { defaultHoldLimits } from "../../api/upstream/request-hold.ts";
import type { DashboardSettings } from "../../dashboard/settings.ts";
import type { ModelTierOptions } from "../../model/settings.ts";
import type {
  ApiSettings,
  LicenseCheckSettings,
  RoutingSource,
  ValkeySettings,
} from "../../start/api-settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readGeneratorSettings } from "./generator.ts";
import { readOidc } from "./oidc.ts";
import { readSocketOptions } from "./sockets.ts";
import { readTelemetry } from "./telemetry.ts";
import { readTls } from "./tls.ts";
import { readTracing } from "./tracing.ts";
import { readVoicesFolder } from "./voices.ts";

const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const day = 86_400;
const mebibyte = 1024 * 1024;

/**
 * Reads the settings of the API tier.
 * @throws UsageError with the variable, its value and the allowed values.
 */
export function readApiSettings(environment: Environment): ApiSettings {
  const { text, integer, optionalInteger } = readers(environment);
  return {
    host: text(names.host) ?? "0.0.0.0",
    port: integer(names.port, ports.api, 0, 65_535),
    tls: readTls(environment),
    routing: readRouting(environment),
    tokenFile: `${text(names.tokenDir) ?? paths.token}/${tokenKey}`,
    licenseFile: text(names.licenseFile) ?? `${paths.license}/${licenseKey}`,
    licenseKeysFile: text(names.licenseKeysFile) ?? `${paths.licenseKeys}/${jwksKey}`,
    licenseGraceSeconds: integer(names.licenseGraceSeconds, 0, 0, 3650 * day),
    licenseCheck: readLicenseCheck(environment),
    keysFile: text(names.keysFile),
    apiKey: readApiKey(environment),
    database: text(names.database),
    databasePasswordFile: text(names.databasePasswordFile),
    spoolFolder: text(names.spoolDir),
    dashboard: readDashboard(environment),
    keysStaleSeconds: integer(names.keysStaleSeconds, 3600, 1, 365 * day),
    keyLimits: {
      ...whereSet("requestsPerMinute", optionalInteger(names.keyRequestsPerMinute, 1, 1_000_000)),
      ...whereSet("streams", optionalInteger(names.keyStreams, 1, 1_000_000)),
    },
    valkey: readValkey(environment),
    trustedProxies: readTrustedProxies(environment),
    drainSeconds: integer(names.drainSeconds, 60, 0, day),
    logLevel: readLogLevel(environment),
    tracing: readTracing(environment, "api"),
    voices,
    limits: readLimits(environment),
    sockets: readSocketOptions(environment),
    waiting: {
      places: integer(names.holdRequests, defaultHoldLimits.places, 0, 10_000),
      longestMs: 1000 * integer(names.holdSeconds, defaultHoldLimits.longestMs / 1000, 0, 3600),
    },
  };
}

/** The length of the shortest accepted API key. 16 characters of base62 have 95 random bits. */
const shortestApiKey = 16;

function readApiKey(environment: Environment): string | undefined {
  const key = readers(environment).text(names.apiKey);
  if (key === undefined || key.length >= shortestApiKey) return key;
  // The value is a secret, so the message does not quote it.
  throw new UsageError(
    `${names.apiKey} must have at least ${shortestApiKey} characters, because a shorter key can be guessed; it has ${key.length}. Create a key with \`svc-tts keys create\`.`,
  );
}

function readTrustedProxies(environment: Environment): string[] {
  const given = readers(environment).text(names.trustedProxies) ?? "";
  const networks = given.split(",").map((part) => part.trim());
  const wrong = networks.find((network) => network !== "" && !isNetwork(network));
  if (wrong === undefined) return networks.filter((network) => network !== "");
  throw new UsageError(
    `${names.trustedProxies} must be addresses and networks separated by commas, such as 10.0.0.0/8,2001:db8::/32, and must not cover all addresses; it contains ${JSON.stringify(wrong)}.`,
  );
}

function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  if (bits === undefined) return true;
  return /^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}

function readDashboard(environment: Environment): DashboardSettings | undefined {
  const { text, optionalInteger } = readers(environment);
  const given = text(names.dashboardUrl);
  if (given === undefined) {
    if (text(names.oidcIssuer) === undefined) return undefined;
    throw new UsageError(
      `${names.oidcIssuer} needs ${names.dashboardUrl}; set it to the URL at which users open the dashboard.`,
    );
  }
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "") {
    throw new UsageError(
      `${names.dashboardUrl} must be the URL at which users open this server, such as https://tts.example.com, without a path; it is ${JSON.stringify(given)}.`,
    );
  }
  if (url.protocol === "http:" && !/^(127(\.\d+){3}|\[::1\]|localhost)$/u.test(url.hostname)) {
    throw new UsageError(
      `${names.dashboardUrl} must start with https://, because plain HTTP does not protect passwords and sessions. Plain HTTP is allowed only for an address of this machine. Terminate TLS in front of the server, and set the https URL.`,
    );
  }
  if (text(names.database) === undefined) {
    throw new UsageError(
      `${names.dashboardUrl} needs ${names.database}; set it to the database for users and keys.`,
    );
  }
  return {
    url: url.origin,
    setupFile: text(names.dashboardSetupFile),
    auditDays: optionalInteger(names.auditDays, 1, 36_500),
    oidc: readOidc(environment),
  };
}

function readLimits(environment: Environment): Partial<ApiLimits> {
  const { integer } = readers(environment);
  const bodyBytes = integer(names.maxBodyBytes, defaultLimits.bodyBytes, 1024, 48 * mebibyte);
  const jsonAudioBytes = integer(names.maxJsonAudioBytes, defaultLimits.jsonAudioBytes, 1024, 256 * mebibyte);
  // The memory must be sufficient for one request of the largest allowed size.
  const least = bodyCopies * bodyBytes + jsonAudioBytes;
  return {
    bodyBytes,
    jsonAudioBytes,
    heldBytes: integer(names.maxHeldBytes, Math.max(defaultLimits.heldBytes, least), least, 2 ** 40),
    headerBytes: integer(names.maxHeaderBytes, defaultLimits.headerBytes, 1024, mebibyte),
    highestRate: integer(names.maxSamplingRate, defaultLimits.highestRate, 24_000, 1_000_000),
    requestTimeoutMs: 1000 * integer(names.requestSeconds, defaultLimits.requestTimeoutMs / 1000, 1, 3600),
    stallMs: 1000 * integer(names.stallSeconds, defaultLimits.stallMs / 1000, 1, 3600),
  };
}

function whereSet<Name extends string>(name: Name, value: number | undefined): { [key in Name]?: number } {
  return value === undefined ? {} : ({ [name]: value } as { [key in Name]?: number });
}

function readLicenseCheck(environment: Environment): LicenseCheckSettings | undefined {
  const { text, integer } = readers(environment);
  const endpoint = text(names.licenseEndpoint);
  if (endpoint === undefined) return undefined;
  if (!URL.canParse(endpoint) || new URL(endpoint).protocol !== "https:")
    throw new UsageError(
      `${names.licenseEndpoint} must be an https URL, such as https://licenses.example.com/v1/status; it is ${JSON.stringify(endpoint)}.`,
    );
  return {
    endpoint,
    intervalSeconds: integer(names.licenseCheckSeconds, defaultCheckSeconds, 60, 30 * day),
    caFile: text(names.licenseCaFile),
  };
}

function readValkey(environment: Environment): ValkeySettings | undefined {
  const { text } = readers(environment);
  const url = text(names.valkeyUrl);
  if (url === undefined) return undefined;
  // The value may contain a password, so the message does not quote it.
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol)) {
    throw new UsageError(
      `${names.valkeyUrl} must be a redis:// URL, such as redis://valkey:6379, or a rediss:// URL for TLS.`,
    );
  }
  return {
    url,
    password: text(names.valkeyPassword),
    passwordFile: text(names.valkeyPasswordFile),
    caFile: text(names.valkeyCaFile),
    prefix: text(names.valkeyPrefix) ?? "svc-tts:",
  };
}

/**
 * Reads the settings of a model tier.
 * @throws UsageError with the variable, its value and the allowed values.
 */
export function readModelSettings(tier: ModelKind, environment: Environment): ModelTierOptions {
  const { text, integer } = readers(environment);
  const generator = readGenerator(tier, environment);
  return {
    tier,
    host: text(names.host) ?? "0.0.0.0",
    port: integer(names.port, ports.model, 0, 65_535),
    tokens: { kind: "folder", path: text(names.tokenDir) ?? paths.token },
    maxConcurrentStreams: integer(names.maxConcurrentStreams, 32, 1, 10_000),
    drainSeconds: integer(names.drainSeconds, 60, 0, day),
    logLevel: readLogLevel(environment),
    ...generator,
    ...readVoicesFolder(tier, environment, generator),
    tracing: readTracing(environment, tier),
    telemetry: tier === "arcana" ? readTelemetry(environment) : undefined,
    ...dictionaryFolder(text(names.dictionaryDir)),
  };
}

function dictionaryFolder(folder: string | undefined): Pick<ModelTierOptions, "dictionaryFolder"> {
  return folder === undefined ? {} : { dictionaryFolder: folder };
}

function readGenerator(
  tier: ModelKind,
  environment: Environment,
): Pick<ModelTierOptions, "generator" | "model"> {
  const value = readers(environment).text(names.arcanaGenerator);
  if (value === undefined) return {};
  const generator = arcanaEngines.find((name) => name === value);
  if (generator === "vllm" && tier === "arcana") {
    return { generator, model: readGeneratorSettings(environment) };
  }
  if (generator) return { generator };
  throw new UsageError(
    `${names.arcanaGenerator} must be one of ${arcanaEngines.join(", ")}; it is ${JSON.stringify(value)}.`,
  );
}

/** Returns the number by which `make run` shifts its three ports. */
export function readPortOffset(environment: Environment): number {
  return readers(environment).integer("PORT_OFFSET", 0, 0, 65_535 - ports.arcanaBesideMist);
}

function readLogLevel(environment: Environment): string {
  return readers(environment).oneOf(names.logLevel, logLevels, "info");
}

function readRouting(environment: Environment): RoutingSource {
  const { text } = readers(environment);
  const path = text(names.routingFile);
  const configMap = text(names.routingConfigMap);
  if ((path === undefined) === (configMap === undefined)) {
    throw new UsageError(
      `Set either ${names.routingFile} (a file) or ${names.routingConfigMap} (a ConfigMap in Kubernetes); ${path === undefined ? "neither is" : "both are"} set.`,
    );
  }
  if (path !== undefined) return { kind: "file", path };
  return {
    kind: "cluster",
    configMap: configMap ?? "",
    namespace: text(names.namespace) ?? ownNamespace(),
    access: podAccess(text("KUBERNETES_SERVICE_HOST"), text("KUBERNETES_SERVICE_PORT"), serviceAccountDir),
  };
}

function ownNamespace(): string {
  const path = `${serviceAccountDir}/namespace`;
  if (existsSync(path)) return readFileSync(path, "utf8").trim();
  throw new UsageError(`Set ${names.namespace} to the pod's namespace; ${path} does not exist.`);
}
