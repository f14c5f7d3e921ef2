import { LruCache } from "../../../lib/lru-cache.ts";
import { readParameters } from "./parameters.ts";
import { readSettings, type SocketRules, type SocketSettings } from "./socket-settings.ts";

/** The highest number of distinct queries whose settings are kept. */
const mostQueries = 256;
/** Longer queries are rare, so their settings are not shared. */
const longestQuery = 1024;

/**
 * Creates a function that reads the settings of a query. Sockets with equal queries share one frozen object,
 * so that an idle socket needs little memory. After a change of the rules, new sockets have new settings.
 * @param rules returns the current rules.
 */
export function shareSettings(rules: () => SocketRules): (query: string) => SocketSettings {
  let usedRules = rules();
  let shared = new LruCache<string, SocketSettings>(mostQueries);
  return (query) => {
    const currentRules = rules();
    if (!areEqual(currentRules, usedRules)) {
      usedRules = currentRules;
      shared = new LruCache(mostQueries);
    }
    const known = shared.get(query);
    if (known) return known;
    const settings = freeze(readSettings(readParameters(query), usedRules));
    if (query.length <= longestQuery) shared.set(query, settings);
    return settings;
  };
}

/** Compares the values by identity. The list of voices is a new object after each change. */
function areEqual(one: SocketRules, other: SocketRules): boolean {
  return (
    one.voices === other.voices &&
    one.profile === other.profile &&
    one.highestRate === other.highestRate &&
    one.aliases === other.aliases
  );
}

function freeze(settings: SocketSettings): SocketSettings {
  Object.freeze(settings.speech.invocation);
  Object.freeze(settings.speech);
  return Object.freeze(settings);
}
