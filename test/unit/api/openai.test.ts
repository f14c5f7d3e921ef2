import { describe, expect, it } from "vitest";
import { findVoice, voices } from "../../../config/contract/voices.ts";
import { openaiModels, openaiVoices } from "../../../server/api/openai/names.ts";
import { readOpenaiRequest } from "../../../server/api/openai/request.ts";

const body = { model: "tts-1", input: "Hello.", voice: "alloy" };
const read = (more: object = {}, profile: "self-hosted" | "cloud" = "self-hosted") =>
  readOpenaiRequest({ ...body, ...more }, { profile, voices });

describe("the voice and model names of OpenAI", () => {
  it.each(Object.entries(openaiVoices))("map the voice %s to the voice %s of arcana", (name, id) => {
    expect(findVoice(id)?.models).toContain("arcana");
    expect(read({ voice: name }).invocation.speaker).toBe(id);
  });

  it("map to different voices", () => {
    expect(new Set(Object.values(openaiVoices)).size).toBe(Object.keys(openaiVoices).length);
  });

  it.each(Object.entries(openaiModels))("map the model %s to %s", (name, modelId) => {
    expect(read({ model: name }).invocation.modelId).toBe(modelId);
  });
});

describe("a request to the OpenAI-compatible API", () => {
  it("selects MP3 at 24 kHz by default", () => {
    expect(read()).toMatchObject({ format: "mp3", rate: 24_000, form: "stream", mediaType: "audio/mpeg" });
  });

  it.each([
    ["opus", "ogg", "audio/ogg"],
    ["wav", "wav", "audio/wav"],
    ["pcm", "pcm", "audio/pcm"],
  ])("accepts response_format %s", (response_format, format, mediaType) => {
    expect(read({ response_format })).toMatchObject({ format, mediaType, rate: 24_000 });
  });

  it("accepts the native models and voices, ignores unknown fields, and converts speed to length", () => {
    const { invocation } = read({ model: "mistv2", voice: "alan", speed: 4, instructions: "Whisper." });
    expect(invocation).toMatchObject({ modelId: "mistv2", speaker: "alan", lang: "eng", stretch: 0.25 });
    expect(read({ stream_format: "sse", speed: null }).form).toBe("events");
  });

  it.each<[object, pointer: string, detail: string]>([
    [{ model: "tts-2" }, "/model", "one of mist, mistv2, arcana, tts-1"],
    [{ model: undefined }, "/model", "is required"],
    [{ voice: "no-such-voice" }, "/voice", "must be a voice of arcana"],
    [{ model: "mist" }, "/voice", "must be a voice of mist"],
    [{ input: "" }, "/input", "must be a non-empty string"],
    [{ input: "secret ".repeat(100), model: "mist", voice: "alan" }, "/input", "the limit with mist is 500"],
    [{ speed: 0.2 }, "/speed", "from 0.25 to 4"],
    [{ speed: 5 }, "/speed", "from 0.25 to 4"],
    [{ response_format: "aac" }, "/response_format", "one of mp3, opus, wav, pcm"],
    [{ response_format: "flac" }, "/response_format", "one of mp3, opus, wav, pcm"],
    [{ stream_format: "chunks" }, "/stream_format", "one of audio, sse"],
  ])("is refused with %o", (more, pointer, detail) => {
    expect(() => read(more)).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        fields: [{ pointer, detail: expect.stringContaining(detail) }],
        message: expect.not.stringContaining("secret"),
      }),
    );
  });

  it("accepts no speed other than 1 for arcana on the cloud profile, as the specification requires", () => {
    expect(() => read({ speed: 2 }, "cloud")).toThrow(/arcana with the profile cloud/);
    expect(read({ speed: 1 }, "cloud").invocation.stretch).toBe(1);
  });
});
