import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelId } from "../../../config/contract/models.ts";
import { resampledLength } from "../../../server/audio/resample.ts";
import { decodeAudio, type Heard, likenessDb, resampleByFfmpeg } from "../../support/audio/audio.ts";
import { rawRequest, rawSpeech } from "../../support/server/api-tier.ts";
import { joinChunks, parseEvents } from "../../support/server/events.ts";
import { hear } from "../../support/server/model-tier.ts";
import { startWholeServer, type WholeServer } from "../../support/server/whole-server.ts";
import { type AudioRow, audioRows, type Codec, type Form } from "./audio-rows.ts";
import { heldRules } from "./held-rules.ts";
import type { RuleId } from "./rules.ts";

const held = heldRules(import.meta.filename);

let server: WholeServer;
beforeAll(async () => {
  server = await startWholeServer();
});
afterAll(() => server.stop());

const text = "Good morning, all.";
const voices: Readonly<Record<ModelId, string>> = { mist: "alan", mistv2: "susan", arcana: "luna" };
/** Greedy sampling makes the engine deterministic. */
const sampling = { repetitionPenalty: 1.5, temperature: 0, topP: 1, maxTokens: 1200 };
const greedy = { temperature: 0 };

const spoken = new Map<ModelId, Promise<Heard>>();
const references = new Map<string, Promise<Int16Array>>();

/** Returns the audio of the engine, without the API tier. */
function engineSpeech(modelId: ModelId): Promise<Heard> {
  const known = spoken.get(modelId);
  if (known !== undefined) return known;
  const { url } = modelId === "arcana" ? server.arcana : server.mist;
  const request = hear(url, { modelId, speaker: voices[modelId], text, sampling });
  const heard = request.then(({ samples, rate }) => ({ samples, rate, codec: "pcm_s16le" }));
  spoken.set(modelId, heard);
  return heard;
}

/** Returns the engine's audio at the rate, resampled by FFmpeg. */
function reference(modelId: ModelId, rate: number): Promise<Int16Array> {
  const key = `${modelId} ${rate}`;
  const resampled =
    references.get(key) ??
    engineSpeech(modelId).then(({ samples, rate: engineRate }) =>
      engineRate === rate ? samples : resampleByFfmpeg(samples, engineRate, rate),
    );
  references.set(key, resampled);
  return resampled;
}

function post({ accept, modelId, body }: AudioRow): Promise<Response> {
  const isDefault = modelId === (accept === "audio/wav" || accept === "audio/*" ? "arcana" : "mist");
  const named = isDefault ? {} : { modelId };
  const whole = { speaker: voices[modelId], text, ...greedy, ...named, ...body };
  return accept === undefined ? postWithoutAccept(whole) : server.api.post(whole, { accept });
}

/** Sends the request without fetch, because fetch always sends `Accept`. */
async function postWithoutAccept(body: object): Promise<Response> {
  const { url, key } = server.api;
  const answer = await request(`${url}/v1/svc-tts`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const headers = answer.headers as Record<string, string>;
  return new Response(await answer.body.arrayBuffer(), { status: answer.statusCode, headers });
}

async function audioOf(answer: Response, form: Form): Promise<Buffer> {
  if (form === "stream") return Buffer.from(await answer.arrayBuffer());
  if (form === "json") {
    const body = (await answer.json()) as { audioContent: string };
    expect(Object.keys(body)).toEqual(["audioContent"]);
    return Buffer.from(body.audioContent, "base64");
  }
  const events = parseEvents(await answer.text());
  expect(events.slice(-2).map(({ name }) => name)).toEqual(["timestamps", "done"]);
  const chunks = events
    .slice(0, -2)
    .map(({ name, data }) => [name, ...Object.keys(data as object)].join(" "));
  expect(new Set(chunks)).toEqual(new Set(["chunk data"]));
  return joinChunks(events);
}

/** The options of FFmpeg for formats without a header. */
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

/**
 * The required similarity of the response to the engine's speech, in decibels. It depends on the loss of each
 * codec.
 */
const minimumLikenessDb = { wav: 35, pcm: 35, mulaw: 33, mp3: 25, ogg: 3 } as const;
/** Below this rate, too little of the speech remains for a comparison. */
const lowestComparedRate = 1000;
/**
 * LAME and a decoder add these samples before the speech. A file can declare their number, but a stream
 * cannot.
 */
const mp3DelaySamples = 576 + 529;

/** The number of samples that FFmpeg must decode. Opus is always decoded at 48000 Hz. */
async function exactLength({ modelId, rate, codec }: AudioRow): Promise<number> {
  const engine = await engineSpeech(modelId);
  const samples = resampledLength(engine.samples.length, engine.rate, rate);
  return codec === "ogg" ? (samples * 48_000) / rate : samples;
}

/**
 * Removes the added silence at both ends of a streamed MP3, which is up to two frames. A stream cannot
 * declare the silence, so FFmpeg decodes it.
 */
function trimmed(row: AudioRow, { samples, rate }: Heard, exact: number): Int16Array {
  if (row.codec !== "mp3" || row.form === "json") return samples;
  const frameSamples = rate >= 32_000 ? 1152 : 576;
  expect(samples.length).toBeGreaterThanOrEqual(mp3DelaySamples + exact);
  expect(samples.length).toBeLessThan(exact + 4 * frameSamples);
  return samples.subarray(mp3DelaySamples, mp3DelaySamples + exact);
}

async function expectSpeech(row: AudioRow, heard: Heard): Promise<void> {
  expect(heard.codec).toBe(codecNames[row.codec]);
  expect(heard.rate).toBe(row.codec === "ogg" ? 48_000 : row.rate);
  const exact = await exactLength(row);
  const samples = trimmed(row, heard, exact);
  expect(samples.length).toBe(exact);
  if (heard.rate < lowestComparedRate) return;
  const expected = await reference(row.modelId, heard.rate);
  expect(likenessDb(samples, expected)).toBeGreaterThan(minimumLikenessDb[row.codec]);
}

function expectWavHeader(bytes: Buffer, { rate, form }: AudioRow): void {
  const unknown = 0xffff_ffff;
  const facts = {
    riff: bytes.toString("latin1", 0, 4),
    size: bytes.readUInt32LE(4),
    wave: bytes.toString("latin1", 8, 16),
    format: [16, 20, 22, 24, 28, 32, 34].map((at) =>
      at === 16 || at === 24 || at === 28 ? bytes.readUInt32LE(at) : bytes.readUInt16LE(at),
    ),
    data: bytes.toString("latin1", 36, 40),
    dataSize: bytes.readUInt32LE(40),
  };
  expect(facts).toEqual({
    riff: "RIFF",
    size: form === "json" ? bytes.length - 8 : unknown,
    wave: "WAVEfmt ",
    // The fields are: length of the header, PCM, mono, rate in Hz, bytes per second, bytes per sample, bits.
    format: [16, 1, 1, rate, 2 * rate, 2, 16],
    data: "data",
    dataSize: form === "json" ? bytes.length - 44 : unknown,
  });
}

/**
 * Checks the original rate (RFC 7845, section 5.1), and that the last granule leaves exactly the synthesized
 * samples (section 4.4).
 */
async function expectOggFacts(bytes: Buffer, row: AudioRow): Promise<void> {
  const head = bytes.indexOf("OpusHead");
  expect(bytes.readUInt32LE(head + 12)).toBe(row.rate);
  const preSkip = bytes.readUInt16LE(head + 10);
  const granule = Number(bytes.readBigInt64LE(bytes.lastIndexOf("OggS") + 6));
  expect(preSkip).toBeGreaterThan(0);
  expect(granule - preSkip).toBe(await exactLength(row));
}

function expectHeaders(row: AudioRow, answer: Response): void {
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": expect.stringMatching(new RegExp(`^${row.mediaType}(;|$)`)),
    vary: "Accept",
    "x-sampling-rate": String(row.rate),
    "x-model": row.modelId,
    "x-voice": voices[row.modelId],
    "x-request-id": expect.stringMatching(/^[\w.:-]+$/),
    "server-timing": expect.stringMatching(/^first-audio;dur=\d+\.\d$/),
  });
}

/** The rules that every row exercises. */
const always: readonly RuleId[] = ["Vary", "answer headers", "Server-Timing", "4.1 Response", "2.2 done"];

describe.concurrent(`a response with audio (${always.join(", ")})`, () => {
  it.each(audioRows)("for Accept $accept, $modelId and $body is $codec at $rate Hz: $rules", async (row) => {
    const answer = await post(row);
    expect(answer.status).toBe(200);
    expectHeaders(row, answer);
    const bytes = await audioOf(answer, row.form);
    if (row.codec === "wav") expectWavHeader(bytes, row);
    if (row.codec === "ogg") await expectOggFacts(bytes, row);
    await expectSpeech(row, await decodeAudio(bytes, formOf(row.codec, row.rate)));
    held.exercised(...row.rules, ...always);
  });
});

describe("raw PCM at the engine's own rate", () => {
  it.each<ModelId>(["mist", "mistv2", "arcana"])("has the samples of %s's engine", async (modelId) => {
    const { samples, rate } = await engineSpeech(modelId);
    const body = { speaker: voices[modelId], text, modelId, ...greedy, samplingRate: rate };
    const bytes = await (await server.api.post(body, { accept: "audio/pcm" })).arrayBuffer();
    expect(Buffer.from(bytes).equals(Buffer.from(samples.buffer))).toBe(true);
  });
});

describe("a streamed WAV", () => {
  it("sends its 44 bytes together with the first audio", async () => {
    const request = rawSpeech(server.api, { speaker: "luna", text }, "audio/wav");
    const { text: answer } = await rawRequest(server.api.url, request);
    const [, size = "", begins] = /\r\n\r\n([0-9a-f]+)\r\n(....)/.exec(answer) ?? [];
    expect(begins).toBe("RIFF");
    expect(Number.parseInt(size, 16)).toBeGreaterThan(44 + 2 * 240); // At least ten milliseconds of audio.
    held.exercised("44 bytes", "4.5 Response");
  });
});
