import type { JSONWebKeySet } from "jose";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type WatchedFile, watchFile } from "../../lib/watched-file.ts";
import { parseKeyFile } from "../store/keys/key-file.ts";
import type { KeyEntry } from "../store/keys/key-store.ts";
import type { ApiSettings } from "./api-settings.ts";

/** The files that the settings name. Each file is read again when it changes. */
export interface Files {
  readonly token: WatchedFile<string> | undefined;
  readonly license: WatchedFile<string> | undefined;
  readonly licenseKeys: WatchedFile<JSONWebKeySet> | undefined;
  readonly keys: WatchedFile<readonly KeyEntry[]> | undefined;
  readonly valkeyPassword: WatchedFile<string> | undefined;
  readonly valkeyCa: WatchedFile<string> | undefined;
}

export function openFiles(settings: ApiSettings, log: Log, clock: Clock): Files {
  const open = <Value>(
    path: string | undefined,
    parse: (text: string) => Value,
    absent: "keep" | "forget",
  ) =>
    path === undefined
      ? undefined
      : watchFile({
          path,
          parse,
          whenAbsent: absent,
          clock,
          onError: (error) =>
            log.error({ err: error }, "a changed file is invalid; its last valid content stays in use"),
        });
  return {
    token: open(settings.tokenFile, (text) => text.trim(), "keep"),
    license: open(settings.licenseFile, (text) => text.trim(), "forget"),
    licenseKeys: open(settings.licenseKeysFile, parseKeySet, "keep"),
    keys: open(settings.keysFile, parseKeyFile, "forget"),
    valkeyPassword: open(settings.valkey?.passwordFile, (text) => text.trim(), "keep"),
    valkeyCa: open(settings.valkey?.caFile, (text) => text, "keep"),
  };
}

function parseKeySet(text: string): JSONWebKeySet {
  const set = JSON.parse(text) as Partial<JSONWebKeySet> | null;
  if (!Array.isArray(set?.keys)) throw new Error('license keys must be a JWKS such as {"keys": [...]}');
  return set as JSONWebKeySet;
}
