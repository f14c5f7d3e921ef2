import { describe, expect, it } from "vitest";
import { audioFormats, chooseVariant, streamTypes } from "../../../server/api/request/variants.ts";
import type { Failure } from "../../../server/contract/errors.ts";

function name(accept: string | undefined): string {
  const variant = chooseVariant(accept);
  if (variant.form === "stream") return variant.mediaType;
  return variant.form === "json" ? `json${variant.formatRequired ? "!" : ""}` : variant.form;
}

describe("Accept selects the form of the response", () => {
  it.each(audioFormats.flatMap((format) => streamTypes[format].map((type) => [type, format] as const)))(
    "%s selects a stream of %s with the first media type of the format",
    (type, format) => {
      const expected = { form: "stream", format, mediaType: streamTypes[format][0] };
      expect(chooseVariant(type)).toMatchObject(expected);
    },
  );

  it.each<[string | undefined, string]>([
    [undefined, "json"],
    ["", "json"],
    ["*/*", "json"],
    ["text/html", "json"],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8", "json"],
    ["application/json", "json!"],
    ["application/json, text/plain, */*", "json!"],
    ["application/*", "json"],
    ["APPLICATION/JSON", "json!"],
    ["audio/pcm", "audio/pcm"],
    ["audio/wav", "audio/wav"],
    ["audio/wave", "audio/wav"],
    ["audio/x-wav;rate=8000", "audio/wav"],
    ["audio/*", "audio/wav"],
    ["audio/*;q=0.5, audio/pcm;q=0.4", "audio/wav"],
    ["audio/*;q=0.5, audio/pcm", "audio/pcm"],
    ["audio/pcm;q=0.3, audio/wav;q=0.7", "audio/wav"],
    ["audio/pcm, audio/wav", "audio/pcm"],
    ["audio/x-unknown, audio/wav;q=0.1", "audio/wav"],
    ["audio/wav;q=0.0001, audio/pcm;q=0.5", "audio/pcm"],
    ["audio/wav;q=0.9999, audio/pcm;q=0.99", "audio/wav"],
    ["audio/wav;q=0, audio/*", "audio/pcm"],
    ["application/json;q=0, */*", "audio/wav"],
    ["text/html, audio/pcm;q=0.2", "audio/pcm"],
    ["audio/x-mulaw", "audio/x-mulaw"],
    ["audio/mpeg", "audio/mpeg"],
    ["audio/mp3", "audio/mpeg"],
    ["audio/ogg; codecs=opus", "audio/ogg"],
    ["text/event-stream", "events"],
    ["text/event-stream, application/json;q=0.9", "events"],
    ["text/event-stream;q=0.5, application/json", "json!"],
    ["audio/basic", "audio/basic"],
    ["audio/PCMU", "audio/basic"],
    ["nonsense", "json"],
    ["audio/wav;q=2", "audio/wav"],
  ])("%j selects %s", (accept, expected) => {
    expect(name(accept)).toBe(expected);
  });

  it.each([
    "audio/x-unknown",
    "audio/x-unknown, audio/aac",
    "audio/*;q=0",
    "*/*;q=0",
    "audio/wav;q=0",
    "text/event-stream;q=0, audio/x-unknown",
    "text/html, */*;q=0",
  ])("%s is refused, and the error lists the media types", (accept) => {
    expect(() => chooseVariant(accept)).toThrow(
      expect.objectContaining<Partial<Failure>>({
        code: "not_acceptable",
        message: expect.stringContaining("audio/wav"),
      }),
    );
  });

  it("reads only the first hundred ranges of a header", () => {
    const nameAfter = (count: number) => name(`${"audio/x-unknown,".repeat(count)}audio/pcm`);
    const refusal = expect.objectContaining<Partial<Failure>>({ code: "not_acceptable" });
    expect(nameAfter(99)).toBe("audio/pcm");
    for (const count of [100, 100_000]) expect(() => nameAfter(count)).toThrow(refusal);
  });
});
