import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { JSONWebKeySet } from "jose";
import { type Logger, pino } from "pino";
import { collectDefaultMetrics, Registry } from "prom-client";
import { requiresLicense } from "../../config/contract/license.ts";
import { ports } from "../../config/contract/names.ts";
import { systemClock } from "../../lib/clock.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { ClusterClient } from "../cluster/client.ts";
import { connect } from "../cluster/connect.ts";
import { defaultCollectorImage } from "../desired/pods/telemetry.ts";
import {
  type LicenseScope,
  needsLicense,
  type PullPolicy,
  type ServerImage,
  type Settings,
} from "../facts/settings.ts";
import {
  callMetrics,
  leaderMetrics,
  modelStatusMetrics,
  queueMetrics,
  resourceMetrics,
  watchMetrics,
} from "../serve/metrics.ts";
import { MetricsAuthorizer } from "../serve/metrics-access.ts";
import { type SecureMetrics, serveProbes } from "../serve/probes.ts";
import { selfSignedCertificate } from "../serve/self-signed.ts";
import { type Operator, startOperator } from "../serve/start.ts";
import { bundleCommand } from "./bundle-command.ts";
import { readClassFile } from "./class-file.ts";
import { explainCommand } from "./explain-command.ts";
import { historyCommand, rollbackCommand } from "./history-command.ts";

const usage = `tts-operator run                    reconcile TtsDeployments until stopped
tts-operator explain NAME           print why a TtsDeployment is not ready, and what to do; the exit code is 3 while it is not ready
tts-operator history NAME [MODEL]   list the revisions of the pools
tts-operator rollback NAME MODEL    return to the previous revision of a model, or to the revision of --to
tts-operator support-bundle [NAME]  write objects, events and logs of a namespace, or of one TtsDeployment, as tar.gz without secrets

Options of all commands except run:
  -n, --namespace     namespace of the TtsDeployment (default: the namespace of the kubeconfig's context)
  -o, --output json   explain, history: print JSON instead of text
  -f, --file          support-bundle: the file to write, or - for standard output
  --to                rollback: the revision, as history prints it (default: the previous revision)
  --cancel            rollback: remove rollout.rollbackTo, so that the settings in the TtsDeployment apply again
  --kubeconfig        a kubeconfig file (default: KUBECONFIG, a pod's service account, ~/.kube/config)
  --context           context of the kubeconfig (default: the current context)

Environment of run:
  TTS_SERVER_IMAGE              default image of API and model pods (required)
  TTS_SERVER_IMAGE_PULL_POLICY  Always, IfNotPresent or Never
  TTS_COLLECTOR_IMAGE_PULL_POLICY  Always, IfNotPresent or Never
  TTS_COLLECTOR_IMAGE           image of the OpenTelemetry Collector in model pods (default:
                                ${defaultCollectorImage})
  TTS_FIXED_USER_IDS            false: let the cluster assign uid, gid and fsGroup of pods, as OpenShift requires
                                (default: true)
  TTS_LICENSE_KEYS_FILE         JWK set of the public keys that verify licenses; if it contains a key, every
                                TtsDeployment needs a license
  TTS_LICENSE_REQUIRED          true: do not start without a license key (default: false)
  TTS_LICENSE_SCOPE             All, or Classes: only classes with license.required need a license (default: All)
  TTS_DEVELOPMENT               true: also trust development licenses (default: false)
  TTS_DEVELOPMENT_KEYS_FILE     JWK set of the public keys that verify development licenses
  TTS_CLASS_FILE                defaults and limits for every TtsDeployment, as the spec of a TtsClass in JSON; only with
                                TTS_WATCH_NAMESPACES, because such an operator cannot read TtsClasses
  TTS_WATCH_NAMESPACES          namespaces to watch, separated by commas (default: all namespaces)
  POD_NAMESPACE, POD_NAME       namespace of the Lease of the leader, and name of this pod; without a namespace
                                there is no leader election
  TTS_LEASE_NAME                name of the Lease (default: tts-operator); one of the processes with this Lease is the leader
  TTS_LOG_LEVEL                 debug, info, warn or error (default: info)
  TTS_METRICS_PORT              port of /metrics (default: ${ports.operatorMetrics})
  TTS_METRICS_SECURE            true: serve /metrics with TLS to accounts that may get it (default: false)
  TTS_PROBE_PORT                port of /healthz and /readyz (default: ${ports.operatorProbes})
  KUBECONFIG                    a kubeconfig file (default: the pod's service account)

  --help, --version
`;

const pullPolicies: readonly PullPolicy[] = ["Always", "IfNotPresent", "Never"];
const defaultLeaseName = "tts-operator";
/**
 * The longest wait for running reconciles after a stop signal. Kubernetes ends the chart's pods after 20
 * seconds.
 */
const stopWithinMs = 15_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** The parts of the process that the command uses. */
export interface Process {
  readonly environment: Environment;
  /** Resolves with the name of the stop signal. */
  readonly stopping: Promise<string>;
  print(text: string | Uint8Array): void;
  complain(text: string): void;
  /** Ends the process immediately, even if a reconcile is running. */
  leave(code: number): void;
}

async function run({ environment, stopping, leave }: Process): Promise<void> {
  const log = pino({ level: environment.TTS_LOG_LEVEL || "info", messageKey: "message" });
  const settings = await readSettings(environment);
  const probePort = portOf(environment, "TTS_PROBE_PORT", ports.operatorProbes);
  const metricsPort = portOf(environment, "TTS_METRICS_PORT", ports.operatorMetrics);
  const connection = await connect({
    kubeconfig: environment.KUBECONFIG || undefined,
    serviceHost: environment.KUBERNETES_SERVICE_HOST,
    servicePort: environment.KUBERNETES_SERVICE_PORT,
  });
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const client = new ClusterClient(connection, { observer: callMetrics(registry, connection.server.host) });
  let operator: Operator | undefined;
  leaderMetrics(registry, environment.TTS_LEASE_NAME || defaultLeaseName, () => operator);
  watchMetrics(registry, () => operator);
  modelStatusMetrics(registry, () => operator);
  resourceMetrics(
    registry,
    () => operator,
    () => Date.now(),
  );
  const secure = environment.TTS_METRICS_SECURE === "true" ? secureMetrics(client, log) : undefined;
  const probes = await serveProbes({ probePort, metricsPort, registry, operator: () => operator, secure });
  log.info(
    {
      version: await version(),
      server: connection.server.origin,
      ...settings.server,
      licenseRequired: needsLicense(settings),
    },
    "the operator is starting",
  );
  const starting = startOperator({
    client,
    settings,
    log,
    namespaces: listOf(environment.TTS_WATCH_NAMESPACES),
    instance: environment.POD_NAME || hostname(),
    ...(environment.POD_NAMESPACE && {
      release: `${environment.POD_NAMESPACE}/${environment.TTS_LEASE_NAME || defaultLeaseName}`,
      election: {
        namespace: environment.POD_NAMESPACE,
        name: environment.TTS_LEASE_NAME || defaultLeaseName,
      },
    }),
    // Another process may become the leader, so this process must stop writing. Kubernetes restarts the
    // process.
    onLost: (reason) => {
      log.fatal({ reason }, "the operator lost the Lease and exits; Kubernetes restarts it");
      leave(1);
    },
    queueObserver: queueMetrics(registry, "tts-operator"),
  });
  operator = await Promise.race([starting, stopping.then(() => undefined)]);
  if (operator !== undefined) log.info({}, "the caches are synchronized, and TtsDeployments are reconciled");
  log.info({ signal: await stopping }, "the operator is stopping");
  await Promise.race([operator?.stop(), delay(stopWithinMs, undefined, { ref: false })]);
  await probes.close();
  client.close();
}

async function readSettings(environment: Environment): Promise<Settings> {
  const file = environment.TTS_CLASS_FILE || undefined;
  if (file !== undefined && listOf(environment.TTS_WATCH_NAMESPACES).length === 0)
    throw new UsageError(
      "TTS_CLASS_FILE is set, but TTS_WATCH_NAMESPACES is not; create a TtsClass, or set TTS_WATCH_NAMESPACES",
    );
  return {
    server: serverImage(environment),
    licenseKeys: await licenseKeys(environment),
    licenseScope: licenseScopeOf(environment),
    ...(file !== undefined && { class: await readClassFile(file) }),
  };
}

function serverImage(environment: Environment): ServerImage {
  const image = environment.TTS_SERVER_IMAGE;
  if (!image) throw new UsageError("TTS_SERVER_IMAGE is not set; set it to the image of API and model pods");
  const pullPolicy = pullPolicyOf(environment, "TTS_SERVER_IMAGE_PULL_POLICY");
  const collectorPullPolicy = pullPolicyOf(environment, "TTS_COLLECTOR_IMAGE_PULL_POLICY");
  const collectorImage = environment.TTS_COLLECTOR_IMAGE || undefined;
  const fixedUserIds = environment.TTS_FIXED_USER_IDS !== "false";
  return {
    image,
    pullPolicy,
    fixedUserIds,
    ...(collectorImage && { collectorImage }),
    ...(collectorPullPolicy && { collectorPullPolicy }),
  };
}

function pullPolicyOf(environment: Environment, name: string): PullPolicy | undefined {
  const policy = environment[name] || undefined;
  const known = pullPolicies.find((one) => one === policy);
  if (policy !== undefined && known === undefined)
    throw new UsageError(`${name} is ${policy}; it must be one of ${pullPolicies.join(", ")}`);
  return known;
}

function secureMetrics(client: ClusterClient, log: Logger): SecureMetrics {
  return {
    certificate: selfSignedCertificate(hostname(), systemClock.nowMs()),
    authorizer: new MetricsAuthorizer(client, systemClock),
    onFailure: (error) =>
      log.warn({ error: String(error) }, "the API server did not verify a client of the metrics"),
  };
}

function licenseScopeOf({ TTS_LICENSE_SCOPE: scope = "" }: Environment): LicenseScope {
  if (scope === "" || scope === "All") return "All";
  if (scope === "Classes") return scope;
  throw new UsageError(`TTS_LICENSE_SCOPE is ${scope}; it must be All or Classes`);
}

/**
 * Reads the license keys. Development keys are trusted only if TTS_DEVELOPMENT is true. Throws `UsageError`
 * if a license is required and there is no key: after an upgrade that omits the keys by mistake, the pods of
 * the earlier version continue to run.
 */
async function licenseKeys(environment: Environment): Promise<JSONWebKeySet> {
  const files = [environment.TTS_LICENSE_KEYS_FILE];
  if (environment.TTS_DEVELOPMENT === "true") files.push(environment.TTS_DEVELOPMENT_KEYS_FILE);
  const sets = await Promise.all(files.filter((file) => file !== undefined && file !== "").map(readKeys));
  const trusted = { keys: sets.flatMap(({ keys }) => keys) };
  if (environment.TTS_LICENSE_REQUIRED === "true" && !requiresLicense(trusted)) {
    throw new UsageError(
      "TTS_LICENSE_REQUIRED is true, but no license key is set; set TTS_LICENSE_KEYS_FILE (license.jwks in the chart) to the public keys of the license issuer, or set TTS_LICENSE_REQUIRED (license.required in the chart) to false",
    );
  }
  return trusted;
}

async function readKeys(file: string | undefined): Promise<JSONWebKeySet> {
  try {
    const set = JSON.parse(await readFile(file ?? "", "utf8")) as JSONWebKeySet;
    if (!Array.isArray(set.keys)) throw new UsageError(`${file} has no list "keys"`);
    return set;
  } catch (cause) {
    throw new UsageError(`cannot read license keys from ${file}: it must be a JWK set (RFC 7517)`, { cause });
  }
}

function portOf(environment: Environment, name: string, defaultPort: number): number {
  const text = environment[name];
  if (!text) return defaultPort;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port;
  throw new UsageError(`${name} is ${text}; it must be a port, 0 to 65535`);
}

function listOf(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

async function version(): Promise<string> {
  const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

async function execute(words: readonly string[], process: Process): Promise<number> {
  const [command, ...rest] = words;
  if (command === undefined || words.includes("--help") || words.includes("-h") || command === "help") {
    process.print(usage);
    return 0;
  }
  if (command === "explain") return explainCommand(rest, process);
  if (command === "history") return historyCommand(rest, process);
  if (command === "rollback") return rollbackCommand(rest, process);
  if (command === "support-bundle") return bundleCommand(rest, process, await version());
  if (command === "--version") process.print(`${await version()}\n`);
  else if (command === "run" && rest.length === 0) await run(process);
  else throw new UsageError(`unknown command: ${words.join(" ")}; see tts-operator --help`);
  return 0;
}

/** Runs the command with these arguments. Returns the exit code. */
export async function runOperatorCommand(words: readonly string[], process: Process): Promise<number> {
  try {
    return await execute(words, process);
  } catch (error) {
    process.complain(`tts-operator: ${error instanceof UsageError ? error.message : describe(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
