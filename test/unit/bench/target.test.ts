import { describe, expect, it } from "vitest";
import { formOf, requestFor, type Target } from "../../../server/bench/target.ts";

const svcTts: Target = {
  url: "http://127.0.0.1:8000",
  shape: "svc-tts",
  key: "k",
  model: "mist",
  voice: "alan",
  accept: "audio/pcm",
  eventFormat: "mp3",
  rate: undefined,
  texts: ["Hello."],
};
const peer: Target = { ...svcTts, shape: "openai", key: undefined, accept: "audio/mpeg" };

describe("a request of the load tool", () => {
  it("has the svc-tts form, with a sampling rate only if one is set", () => {
    const { origin, path, headers, body } = requestFor(svcTts, "Hello.");
    expect([origin, path]).toEqual(["http://127.0.0.1:8000", "/v1/svc-tts"]);
    expect(headers).toMatchObject({ accept: "audio/pcm", authorization: "Bearer k" });
    expect(JSON.parse(body)).toEqual({ modelId: "mist", speaker: "alan", text: "Hello." });
    expect(JSON.parse(requestFor({ ...svcTts, rate: 8000 }, "Hello.").body)).toMatchObject({
      samplingRate: 8000,
    });
  });

  it("has the OpenAI form for peers, without a key if none is set", () => {
    const { path, headers, body } = requestFor(peer, "Hello.");
    expect(path).toBe("/v1/audio/speech");
    expect(headers).not.toHaveProperty("authorization");
    expect(JSON.parse(body)).toEqual({
      model: "mist",
      voice: "alan",
      input: "Hello.",
      response_format: "mp3",
    });
  });

  it("requests server-sent events in both forms", () => {
    const accept = "text/event-stream";
    const body = (target: Target) => JSON.parse(requestFor({ ...target, accept }, "Hello.").body);
    expect(body(svcTts)).toMatchObject({ audioFormat: "mp3" });
    expect(body(peer)).toMatchObject({ response_format: "mp3", stream_format: "sse" });
  });

  it("keeps the path of a URL", () => {
    expect(requestFor({ ...peer, url: "http://x:1/tts/speak?a=b" }, "").path).toBe("/tts/speak?a=b");
  });
});

describe("the form of a response", () => {
  it.each([
    [svcTts, { "content-type": "audio/pcm", "x-sampling-rate": "16000" }, "audio/pcm", 16_000],
    [svcTts, { "content-type": "Audio/L16; rate=44100;channels=1" }, "audio/l16", 44_100],
    [{ ...svcTts, rate: 8000 }, { "content-type": "audio/pcm" }, "audio/pcm", 8000],
    [svcTts, { "content-type": "audio/pcm" }, "audio/pcm", undefined],
    [svcTts, { "content-type": "audio/pcm", "x-sampling-rate": "many" }, "audio/pcm", undefined],
    [peer, {}, "audio/mpeg", 24_000],
    [{ ...peer, rate: 22_050 }, { "content-type": "audio/pcm" }, "audio/pcm", 22_050],
  ] as const)(
    "is read from the headers if they have it, and else from the target (case %#)",
    (target, headers, mediaType, rate) => {
      expect(formOf(target, headers)).toEqual({ mediaType, rate, inEvents: false });
    },
  );

  it("is the form of the audio in the events for a response with events", () => {
    const headers = { "content-type": "text/event-stream; charset=utf-8", "x-sampling-rate": "24000" };
    expect(formOf(svcTts, headers)).toEqual({ mediaType: "audio/mpeg", rate: 24_000, inEvents: true });
  });
});
