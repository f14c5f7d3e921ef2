import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mp3RateFor } from "../../../server/audio/mp3.ts";
import { resampledLength } from "../../../server/audio/resample.ts";
import { startTestApi, type TestApi } from "../../support/api-tier.ts";
import { joinChunks, parseEvents } from "../../support/events.ts";
import { decodeAudio, type Heard, toneOf } from "../../support/ffmpeg.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../support/scripted-model.ts";

/** What the scripted model says: this tone, for this long, at its engine's rate. */
const toneHz = 440;
const seconds = 0.7;
const engineRate = 24_000;
const spoken = seconds * engineRate;

let api: TestApi;
let model: ScriptedModel;

beforeAll(async () => {
  model = await startScriptedModel(speakTone(seconds, engineRate));
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  api = await startTestApi({ mist: route, mistv2: route, arcana: route });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

const mist = { speaker: "abbie", text: "Hello there." };
const mistv2 = { ...mist, modelId: "mistv2" };
const arcana = { speaker: "luna", text: "Hello there.", modelId: "arcana" };

type Form = "json" | "events" | "stream";
type Row = readonly [accept: string, body: object, form: Form, codec: Codec, rate: number];
type Codec = "wav" | "pcm" | "mulaw" | "mp3" | "ogg";

/** Every row of the specification's part 4 and of the table of variants, with its defaults and its edges. */
const rows: readonly Row[] = [
  // 4.1, the event stream
  ["text/event-stream", mist, "events", "mp3", 22_050],
  ["text/event-stream", { ...mistv2, audioFormat: "mp3" }, "events", "mp3", 22_050],
  ["text/event-stream", { ...mist, audioFormat: "mulaw" }, "events", "mulaw", 22_050],
  ["text/event-stream", { ...mistv2, audioFormat: "mulaw", samplingRate: 8000 }, "events", "mulaw", 8000],
  ["text/event-stream", { ...mist, audioFormat: "pcm" }, "events", "pcm", 22_050],
  ["text/event-stream", { ...mist, audioFormat: "pcm", samplingRate: 4000 }, "events", "pcm", 4000],
  ["text/event-stream", { ...mist, audioFormat: "pcm", samplingRate: 44_100 }, "events", "pcm", 44_100],
  ["text/event-stream", { ...mist, audioFormat: "mp3", samplingRate: 4000 }, "events", "mp3", 4000],
  ["text/event-stream", arcana, "events", "mp3", 24_000],
  // 4.2, WAV in JSON
  ["application/json", { ...mist, audioFormat: "wav" }, "json", "wav", 22_050],
  ["application/json", { ...mistv2, audioFormat: "wav", samplingRate: 4000 }, "json", "wav", 4000],
  ["application/json", { ...mist, audioFormat: "wav", samplingRate: 44_100 }, "json", "wav", 44_100],
  ["application/json", { ...arcana, audioFormat: "wav" }, "json", "wav", 24_000],
  // 4.3, Ogg in JSON
  ["application/json", { ...mist, audioFormat: "ogg", samplingRate: 8000 }, "json", "ogg", 8000],
  ["application/json", { ...mist, audioFormat: "ogg", samplingRate: 12_000 }, "json", "ogg", 12_000],
  ["application/json", { ...mistv2, audioFormat: "ogg", samplingRate: 16_000 }, "json", "ogg", 16_000],
  ["application/json", { ...arcana, audioFormat: "ogg", samplingRate: 24_000 }, "json", "ogg", 24_000],
  // 4.4, raw PCM
  ["audio/pcm", mist, "stream", "pcm", 16_000],
  ["audio/pcm", { ...mistv2, samplingRate: 44_100 }, "stream", "pcm", 44_100],
  ["audio/pcm", { ...mist, samplingRate: 4000 }, "stream", "pcm", 4000],
  ["audio/pcm", arcana, "stream", "pcm", 24_000],
  // 4.5, streamed WAV
  ["audio/wav", { ...arcana, modelId: undefined }, "stream", "wav", 24_000],
  ["audio/wav", { ...arcana, samplingRate: 8000 }, "stream", "wav", 8000],
  ["audio/wav", { ...arcana, samplingRate: 96_000 }, "stream", "wav", 96_000],
  ["audio/wav", { ...arcana, samplingRate: 11_111 }, "stream", "wav", 11_111],
  ["audio/wav", { ...mist, modelId: "mist" }, "stream", "wav", 22_050],
  ["audio/*", { ...arcana, modelId: undefined }, "stream", "wav", 24_000],
  // where the specification is silent
  ["*/*", mist, "json", "wav", 22_050],
  ["text/html", mist, "json", "wav", 22_050],
  ["*/*", { ...mist, audioFormat: "mp3" }, "json", "mp3", 22_050],
  ["application/json", { ...mist, audioFormat: "mp3" }, "json", "mp3", 22_050],
  ["application/json", { ...arcana, audioFormat: "mp3", samplingRate: 96_000 }, "json", "mp3", 96_000],
  ["application/json", { ...mist, audioFormat: "mulaw" }, "json", "mulaw", 22_050],
  ["application/json", { ...mist, audioFormat: "pcm" }, "json", "pcm", 22_050],
  ["audio/mpeg", mist, "stream", "mp3", 22_050],
  ["audio/mp3", { ...mist, samplingRate: 9000 }, "stream", "mp3", 9000],
  ["audio/mpeg", { ...arcana, samplingRate: 48_000 }, "stream", "mp3", 48_000],
  ["audio/ogg", { ...mist, samplingRate: 16_000 }, "stream", "ogg", 16_000],
  ["audio/ogg", { ...arcana, samplingRate: 24_000 }, "stream", "ogg", 24_000],
  ["audio/x-mulaw", mist, "stream", "mulaw", 22_050],
  ["audio/basic", mist, "stream", "mulaw", 8000],
  ["audio/PCMU", { ...arcana, samplingRate: 8000 }, "stream", "mulaw", 8000],
];

const mediaTypes: Readonly<Record<string, string>> = {
  "audio/mp3": "audio/mpeg",
  "audio/PCMU": "audio/basic",
  "audio/*": "audio/wav",
  "*/*": "application/json",
  "text/html": "application/json",
};

async function audioOf(answer: Response, form: Form): Promise<Buffer> {
  if (form === "stream") return Buffer.from(await answer.arrayBuffer());
  if (form === "events") return joinChunks(parseEvents(await answer.text()));
  const body = (await answer.json()) as { audioContent: string };
  expect(Object.keys(body)).toEqual(["audioContent"]);
  return Buffer.from(body.audioContent, "base64");
}

/** What the bytes do not tell of themselves. */
function formOf(codec: Codec, rate: number): string[] {
  if (codec === "pcm") return ["-f", "s16le", "-ar", String(rate), "-ac", "1"];
  if (codec === "mulaw") return ["-f", "mulaw", "-ar", String(rate), "-ac", "1"];
  return [];
}

const codecNames = {
  wav: "pcm_s16le",
  pcm: "pcm_s16le",
  mulaw: "pcm_mulaw",
  mp3: "mp3",
  ogg: "opus",
} as const;

function expectLength({ samples, rate }: Heard, codec: Codec, form: Form): void {
  const exact = resampledLength(spoken, engineRate, rate);
  if (codec !== "mp3" || form === "json") {
    expect(samples.length).toBe(exact);
    return;
  }
  // a streamed MP3 cannot say how much of it is padding: a frame or two at its start and its end
  expect(samples.length).toBeGreaterThanOrEqual(exact);
  expect(samples.length).toBeLessThan(exact + 4 * (rate >= 32_000 ? 1152 : 576));
}

describe("every form of the answer", () => {
  it.each(rows)("%s %o is %s with %s at %i Hz", async (accept, body, form, codec, asked) => {
    const answer = await api.post(body, { accept });
    expect(answer.status).toBe(200);
    const rate = codec === "mp3" ? mp3RateFor(asked) : asked;
    expect(answer.headers.get("content-type")?.split(";")[0]).toBe(mediaTypes[accept] ?? accept);
    expect(answer.headers.get("vary")).toBe("Accept");
    expect(answer.headers.get("x-sampling-rate")).toBe(String(rate));
    const heard = await decodeAudio(await audioOf(answer, form), formOf(codec, rate));
    expect(heard.codec).toBe(codecNames[codec]);
    expect(heard.rate).toBe(codec === "ogg" ? 48_000 : rate);
    expectLength(heard, codec, form);
    expect(toneOf(heard)).toBeGreaterThan(toneHz - 2);
    expect(toneOf(heard)).toBeLessThan(toneHz + 2);
  });
});

describe("the first bytes", () => {
  it.each(rows.filter(([, , form]) => form !== "json"))(
    "of %s %o leave while the model still speaks",
    async (accept, body) => {
      const release = Promise.withResolvers<void>();
      const usual = model.script;
      model.script = async (call) => {
        await call.head(engineRate);
        await call.tone(engineRate / 5, engineRate);
        await release.promise;
        await call.end(engineRate / 5);
      };
      const answer = await api.post(body, { accept });
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      const { value, done } = await reader.read();
      expect(done).toBe(false);
      expect((value as Uint8Array).length).toBeGreaterThan(44);
      model.script = usual;
      release.resolve();
      while (!(await reader.read()).done);
    },
  );
});
