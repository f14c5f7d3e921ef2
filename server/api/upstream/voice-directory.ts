import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { Agent } from "undici";
import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import { readBounded } from "./bounded-body.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** The voices that clients may use: the server's own, and those that model tiers report. */
export interface VoiceDirectory {
  /** Natural voices first, then the server's own, then other mounted voices. */
  all(): readonly DirectoryVoice[];
  /** The mounted models that serve a model's voices, with their variants. */
  mountedEngines(model: ModelId): readonly MountedEngine[];
  /** Base URLs of the replicas without this voice. Empty for the server's own voices. */
  replicasWithout(voiceId: string): ReadonlySet<string>;
  close(): Promise<void>;
}

export interface DirectoryVoice extends ListedVoice {
  /** The engine in each of its models, as far as model tiers have reported it. */
  readonly engines: Readonly<Partial<Record<ModelId, string>>>;
}

export interface MountedEngine {
  readonly engine: string;
  /** Variant of the engine, if it has several. */
  readonly variant?: string | undefined;
}

export interface VoiceDirectoryOptions {
  readonly own: readonly ListedVoice[];
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The part of a model tier's `GET /voices` that clients need. */
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
/** Engines whose voices are listed first, because they have the best quality. */
const naturalEngines = ["kokoro"];

/**
 * Calls every replica periodically. A replica that does not respond keeps its last voices while it exists.
 */
export function createVoiceDirectory(options: VoiceDirectoryOptions): VoiceDirectory {
  const { own, directory, intervalMs, timeoutMs, clock } = options;
  const agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs });
  const ownIds = new Set(own.map(({ id }) => id));
  const mounted = new Map<string, VoiceList>();
  let joined: readonly DirectoryVoice[] = joinedVoices(own, []);

  const join = () => {
    joined = joinedVoices(own, [...mounted.values()]);
  };
  const ask = async (url: string) => {
    const found = await readList(agent, url);
    if (!found) return;
    mounted.set(url, found);
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
    mountedEngines: (model) => {
      const reported = [...mounted.values()].flatMap(({ models = [] }) => models);
      const speaking = reported.filter(({ models }) => models.includes(model));
      const byName = new Map(speaking.map((found) => [`${found.engine} ${found.variant}`, found]));
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

/** A built-in voice that a mounted one replaces keeps its ID and its position. */
function joinedVoices(own: readonly ListedVoice[], reports: readonly VoiceList[]): DirectoryVoice[] {
  const ownIds = new Set(own.map(({ id }) => id));
  const builtIn = reports.flatMap(speakersOf);
  const spokenNow = own.map((voice): DirectoryVoice => {
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
  return [...others.filter(isNatural), ...spokenNow, ...others.filter((voice) => !isNatural(voice))];
}

type BuiltInSpeaker = NonNullable<VoiceList["builtIn"]>[number];

/** A model tier of an earlier version reports only the voices that are replaced in all of their models. */
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

/** A missing or invalid response changes nothing: a tier of an older version has no such list. */
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
