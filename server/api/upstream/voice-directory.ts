import Type from "typebox";
import { Compile } from "typebox/compile";
import { Agent } from "undici";
import { modelIds } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import { readBounded } from "./bounded-body.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** The voices that callers may name: the server's own, and those that model tiers tell of. */
export interface VoiceDirectory {
  /** The server's own first. */
  all(): readonly ListedVoice[];
  /** Base URLs of the replicas that cannot speak this voice; none where it is the server's own. */
  replicasWithout(voiceId: string): ReadonlySet<string>;
  close(): Promise<void>;
}

export interface VoiceDirectoryOptions {
  readonly own: readonly ListedVoice[];
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The part of a model tier's `GET /voices` that concerns callers. */
const listSchema = Type.Object({
  voices: Type.Array(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 64 }),
      models: Type.Array(Type.Enum([...modelIds])),
      language: Type.String({ pattern: "^[a-z]{3}$" }),
      gender: Type.Enum(["female", "male", "neutral"]),
      license: Type.String({ maxLength: 200 }),
    }),
    { maxItems: 10_000 },
  ),
});
const list = Compile(listSchema);
const maxListBytes = 4 * 1024 * 1024;
const none: ReadonlySet<string> = new Set();

/** Asks every replica once an interval. One that does not answer keeps what it said last, as long as it is there. */
export function createVoiceDirectory(options: VoiceDirectoryOptions): VoiceDirectory {
  const { own, directory, intervalMs, timeoutMs, clock } = options;
  const agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs });
  const ownIds = new Set(own.map(({ id }) => id));
  const mounted = new Map<string, readonly ListedVoice[]>();
  let joined = own;

  const join = () => {
    const byId = new Map([...mounted.values()].flat().map((voice) => [voice.id, voice]));
    joined = [...own, ...[...byId.values()].filter(({ id }) => !ownIds.has(id))];
  };
  const ask = async (url: string) => {
    const told = await readList(agent, url);
    if (!told) return;
    mounted.set(url, told);
    join();
  };
  const askAll = () => {
    const urls = replicasOf(directory);
    for (const url of mounted.keys()) if (!urls.has(url)) mounted.delete(url);
    join();
    for (const url of urls) void ask(url);
  };
  const stop = every(clock, intervalMs, askAll);
  directory.onChange(askAll);
  askAll();

  return {
    all: () => joined,
    replicasWithout: (voiceId) => {
      if (ownIds.has(voiceId)) return none;
      const has = (url: string) => mounted.get(url)?.some(({ id }) => id === voiceId) === true;
      return new Set([...replicasOf(directory)].filter((url) => !has(url)));
    },
    close: () => {
      stop();
      return agent.destroy();
    },
  };
}

function replicasOf(directory: ReplicaDirectory): Set<string> {
  const routes = modelIds.flatMap((id) => directory.table()?.models[id] ?? []);
  return new Set(routes.flatMap((route) => directory.replicas(route)));
}

/** Not answering, or not so, says nothing new: a tier of an older version has no such list. */
async function readList(agent: Agent, origin: string): Promise<readonly ListedVoice[] | undefined> {
  try {
    const { statusCode, body } = await agent.request({ origin, path: "/voices", method: "GET" });
    const text = await readBounded(body, maxListBytes);
    if (statusCode !== 200 || text === undefined) return undefined;
    const told: unknown = JSON.parse(text);
    return list.Check(told) ? told.voices : undefined;
  } catch {
    return undefined;
  }
}
