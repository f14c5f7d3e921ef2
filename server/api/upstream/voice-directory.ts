import { isDeepStrictEqual } from "node:util";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { Agent } from "undici";
import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import { readBounded } from "./bounded-body.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** The voices that clients may use: the built-in voices, and the mounted voices that model tiers report. */
export interface VoiceDirectory {
  /**
   * Returns natural mounted voices first, then the built-in voices, then other mounted voices. The list is a
   * new object only after a change.
   */
  all(): readonly DirectoryVoice[];
  /** Returns the mounted engines that serve voices of this model, with their variants. */
  mountedEngines(model: ModelId): readonly MountedEngine[];
  /**
   * Returns the base URLs of the replicas that do not have this voice. The result is empty for a built-in
   * voice.
   */
  replicasWithout(voiceId: string): ReadonlySet<string>;
  close(): Promise<void>;
}

export interface DirectoryVoice extends ListedVoice {
  /** The engine of the voice by model. A model is absent until a model tier has reported its engine. */
  readonly engines: Readonly<Partial<Record<ModelId, string>>>;
}

export interface MountedEngine {
  readonly engine: string;
  /** The variant of the engine, if the engine has several variants. */
  readonly variant?: string | undefined;
}

export interface VoiceDirectoryOptions {
  readonly own: readonly ListedVoice[];
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The part of a model tier's `GET /voices` that the API tier needs. */
const listSchema = Type.Object({
  voices: Type.Array(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 64 }),
      models: Type.Array(Type.Enum([...modelIds])),
      language: Type.String({ pattern: "^[a-z]{3}$" }),
      gender: Type.Enum(["female", "male", "neutral"]),
      license: Type.String({ maxLength: 200 }),
      engine: Type.Optional(Type.String({ maxLength: 64 })),
      replaces: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 20 })),
    }),
    { maxItems: 10_000 },
  ),
  builtIn: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String({ maxLength: 64 }),
        model: Type.Enum([...modelIds]),
        engine: Type.String({ maxLength: 64 }),
        license: Type.String({ maxLength: 200 }),
      }),
      { maxItems: 1_000 },
    ),
  ),
  models: Type.Optional(
    Type.Array(
      Type.Object({
        engine: Type.String({ maxLength: 64 }),
        variant: Type.Optional(Type.String({ maxLength: 500 })),
        models: Type.Array(Type.Enum([...modelIds])),
      }),
      { maxItems: 1_000 },
    ),
  ),
});
type VoiceList = Static<typeof listSchema>;
const voiceList = Compile(listSchema);
const maxListBytes = 4 * 1024 * 1024;
const none: ReadonlySet<string> = new Set();
/** The engines with the best quality, whose voices are listed first. */
const naturalEngines = ["kokoro"];

/**
 * Requests the voices of every replica periodically. If a replica does not respond, its last reported voices stay
 * in use until the replica is deleted.
 */
export function createVoiceDirectory(options: VoiceDirectoryOptions): VoiceDirectory {
  const { own, directory, intervalMs, timeoutMs, clock } = options;
  const agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs });
  const ownIds = new Set(own.map(({ id }) => id));
  const mounted = new Map<string, VoiceList>();
  let joined: readonly DirectoryVoice[] = joinedVoices(own, []);

  const join = () => {
    const next = joinedVoices(own, [...mounted.values()]);
    // Open sockets keep the list. Without a change, all of them must keep the same one.
    if (!isDeepStrictEqual(next, joined)) joined = next;
  };
  const requestVoices = async (url: string) => {
    const list = await readList(agent, url);
    if (!list) return;
    mounted.set(url, list);
    join();
  };
  const requestAll = () => {
    const urls = replicasOf(directory);
    for (const url of mounted.keys()) if (!urls.has(url)) mounted.delete(url);
    join();
    for (const url of urls) void requestVoices(url);
  };
  const stop = every(clock, intervalMs, requestAll);
  directory.onChange(requestAll);
  requestAll();

  return {
    all: () => joined,
    mountedEngines: (model) => {
      const reported = [...mounted.values()].flatMap(({ models = [] }) => models);
      const serving = reported.filter(({ models }) => models.includes(model));
      const byName = new Map(serving.map((entry) => [`${entry.engine} ${entry.variant}`, entry]));
      return [...byName.values()].map(({ engine, variant }) => ({ engine, ...(variant && { variant }) }));
    },
    replicasWithout: (voiceId) => {
      if (ownIds.has(voiceId)) return none;
      const has = (url: string) => mounted.get(url)?.voices.some(({ id }) => id === voiceId) === true;
      return new Set([...replicasOf(directory)].filter((url) => !has(url)));
    },
    close: () => {
      stop();
      return agent.destroy();
    },
  };
}

/**
 * Combines the built-in voices with the voices that model tiers report. A built-in voice that a mounted voice
 * replaces keeps its ID and its position.
 */
function joinedVoices(own: readonly ListedVoice[], reports: readonly VoiceList[]): DirectoryVoice[] {
  const ownIds = new Set(own.map(({ id }) => id));
  const builtIn = reports.flatMap(speakersOf);
  const builtInVoices = own.map((voice): DirectoryVoice => {
    const speakers = builtIn.filter(({ id }) => id === voice.id);
    const licenses = [...new Set(speakers.map(({ license }) => license))];
    return {
      ...voice,
      ...(licenses.length > 0 && { license: licenses.join("; ") }),
      engines: Object.fromEntries(speakers.map(({ model, engine }) => [model, engine])),
    };
  });
  const byId = new Map(reports.flatMap(({ voices }) => voices).map((voice) => [voice.id, voice]));
  const others = [...byId.values()].filter(({ id }) => !ownIds.has(id)).map(asDirectoryVoice);
  const isNatural = ({ engines }: DirectoryVoice) =>
    Object.values(engines).some((engine) => naturalEngines.includes(engine));
  return [...others.filter(isNatural), ...builtInVoices, ...others.filter((voice) => !isNatural(voice))];
}

type BuiltInSpeaker = NonNullable<VoiceList["builtIn"]>[number];

/**
 * Returns the engine and the license of each built-in voice. Model tiers of older versions do not send
 * `builtIn`, but each of their mounted voices names the voices that it replaces.
 */
function speakersOf({ builtIn, voices }: VoiceList): readonly BuiltInSpeaker[] {
  if (builtIn) return builtIn;
  return voices.flatMap(({ replaces = [], models, engine, license }) => {
    if (engine === undefined) return [];
    return replaces.flatMap((id) => models.map((model) => ({ id, model, engine, license })));
  });
}

function asDirectoryVoice({
  id,
  models,
  language,
  gender,
  license,
  engine,
}: VoiceList["voices"][number]): DirectoryVoice {
  const engines = engine === undefined ? {} : Object.fromEntries(models.map((model) => [model, engine]));
  return { id, models, language, gender, license, engines };
}

function replicasOf(directory: ReplicaDirectory): Set<string> {
  const routes = modelIds.flatMap((id) => directory.table()?.models[id] ?? []);
  return new Set(routes.flatMap((route) => directory.replicas(route)));
}

/**
 * Requests the voices of a replica. The result is undefined if the response is missing or invalid, because
 * model tiers of older versions have no route `/voices`.
 */
async function readList(agent: Agent, origin: string): Promise<VoiceList | undefined> {
  try {
    const { statusCode, body } = await agent.request({ origin, path: "/voices", method: "GET" });
    const text = await readBounded(body, maxListBytes);
    if (statusCode !== 200 || text === undefined) return undefined;
    const response: unknown = JSON.parse(text);
    return voiceList.Check(response) ? response : undefined;
  } catch {
    return undefined;
  }
}
