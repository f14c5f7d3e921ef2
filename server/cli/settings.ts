import { existsSync, readFileSync } from "node:fs";
import type { Tier } from "../../config/contract/models.ts";
import { jwksKey, env as names, paths, ports, tokenKey } from "../../config/contract/names.ts";
import { voices } from "../../config/contract/voices.ts";
import { podAccess, serviceAccountDir } from "../api/kubernetes/connection.ts";
import type { ApiSettings, RoutingSource } from "../api/start.ts";
import type { ModelTierOptions } from "../model/tier.ts";
import { UsageError } from "./command.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const day = 86_400;

/** @throws UsageError naming the variable, its value and what is allowed. */
export function readApiSettings(environment: Environment): ApiSettings {
  const { text, integer } = readers(environment);
  return {
    host: text(names.host) ?? "0.0.0.0",
    port: integer(names.port, ports.api, 0, 65_535),
    routing: readRouting(environment),
    tokenFile: `${text(names.tokenDir) ?? paths.token}/${tokenKey}`,
    licenseFile: text(names.licenseFile) ?? `${paths.license}/license.jwt`,
    licenseKeysFile: text(names.licenseKeysFile) ?? `${paths.licenseKeys}/${jwksKey}`,
    licenseGraceSeconds: integer(names.licenseGraceSeconds, 0, 0, 3650 * day),
    keysFile: text(names.keysFile),
    apiKey: text(names.apiKey),
    drainSeconds: integer(names.drainSeconds, 60, 0, day),
    logLevel: readLogLevel(environment),
    voices,
  };
}

/** @throws UsageError naming the variable, its value and what is allowed. */
export function readModelSettings(tier: Tier, environment: Environment): ModelTierOptions {
  const { text, integer } = readers(environment);
  return {
    tier,
    host: text(names.host) ?? "0.0.0.0",
    port: integer(names.port, ports.model, 0, 65_535),
    tokens: { kind: "folder", path: text(names.tokenDir) ?? paths.token },
    maxConcurrentStreams: integer(names.maxConcurrentStreams, 32, 1, 10_000),
    drainSeconds: integer(names.drainSeconds, 60, 0, day),
    logLevel: readLogLevel(environment),
  };
}

/** How far `make run` shifts its three ports. */
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
      `Set one of ${names.routingFile} (a routing table file) and ${names.routingConfigMap} (a ConfigMap, inside Kubernetes); ${path === undefined ? "neither" : "both"} is set.`,
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
  throw new UsageError(`Set ${names.namespace} to the pod's namespace; ${path} is not there.`);
}

function readers(environment: Environment) {
  /** An empty variable counts as unset, as Kubernetes and shells pass them. */
  const text = (name: string): string | undefined => environment[name] || undefined;
  return {
    text,
    integer(name: string, fallback: number, from: number, to: number): number {
      const given = text(name);
      if (given === undefined) return fallback;
      const value = Number(given);
      if (Number.isInteger(value) && value >= from && value <= to) return value;
      throw new UsageError(
        `${name} must be an integer from ${from} to ${to}; it is ${JSON.stringify(given)}.`,
      );
    },
    oneOf(name: string, allowed: readonly string[], fallback: string): string {
      const given = text(name) ?? fallback;
      if (allowed.includes(given)) return given;
      throw new UsageError(`${name} must be one of ${allowed.join(", ")}; it is ${JSON.stringify(given)}.`);
    },
  };
}
