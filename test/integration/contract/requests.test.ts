import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { languages, voices, voicesOf } from "../../../config/contract/voices.ts";
import { eventually } from "../../support/eventually.ts";
import { joinChunks, parseEvents } from "../../support/server/events.ts";
import { startWholeServer, type WholeServer } from "../../support/server/whole-server.ts";
import { heldRules } from "./held-rules.ts";
import {
  accepted,
  arcana,
  cloudRates,
  cloudRefusals,
  different,
  equal,
  longer,
  mist,
  negotiation,
  refusals,
} from "./request-rows.ts";
import type { RuleId } from "./rules.ts";

const held = heldRules(import.meta.filename);

let server: WholeServer;
beforeAll(async () => {
  server = await startWholeServer();
});
afterAll(() => server.stop());

const post = (accept: string, body: unknown) =>
  server.api.post(body === undefined ? "" : JSON.stringify(body), { accept });

/** Returns the bytes of the audio from a response in any form. */
async function sound(accept: string, body: object): Promise<Buffer> {
  const answer = await post(accept, body);
  expect({ status: answer.status, ...(answer.ok ? {} : { problem: await answer.json() }) }).toEqual({
    status: 200,
  });
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) return joinChunks(parseEvents(await answer.text()));
  if (!type.startsWith("application/json")) return Buffer.from(await answer.arrayBuffer());
  const { audioContent } = (await answer.json()) as { audioContent: string };
  return Buffer.from(audioContent, "base64");
}

interface Problem {
  readonly code: string;
  readonly status: number;
  readonly detail: string;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

async function expectRejected(accept: string, body: unknown, pointers: readonly string[]): Promise<void> {
  const answer = await post(accept, body);
  const problem = (await answer.json()) as Problem;
  expect({ status: answer.status, type: answer.headers.get("content-type") }).toEqual({
    status: 400,
    type: "application/problem+json",
  });
  expect(problem).toMatchObject({ code: "invalid_request", status: 400 });
  expect(problem.errors?.map(({ pointer }) => pointer).toSorted()).toEqual(pointers.toSorted());
  for (const { detail } of problem.errors ?? []) expect(detail.length).toBeGreaterThan(10);
}

describe.concurrent("the server rejects an invalid field, and the error names the field", () => {
  it.each(refusals)(
    "%j: %s %j",
    held.row((_rules, accept, body, pointers) => expectRejected(accept, body, pointers)),
  );
});

describe.concurrent("the server accepts a value at the limit of its field", () => {
  it.each(accepted)(
    "%j: %s %j",
    held.row(async (_rules, accept, body) => {
      expect((await sound(accept, body)).length).toBeGreaterThan(0);
    }),
  );
});

describe.concurrent("two equivalent requests return the same bytes", () => {
  it.each(equal)(
    "%j: %s %j %j",
    held.row(async (_rules, accept, one, other) => {
      const [first, second] = await Promise.all([sound(accept, one), sound(accept, other)]);
      expect(first.length).toBeGreaterThan(1000);
      expect(first.equals(second)).toBe(true);
    }),
  );
});

describe.concurrent("a field with an effect changes the audio", () => {
  it.each(different)(
    "%j: %s %j %j",
    held.row(async (_rules, accept, one, other) => {
      const [first, second] = await Promise.all([sound(accept, one), sound(accept, other)]);
      expect(first.equals(second)).toBe(false);
    }),
  );

  it.each(longer)(
    "%j: %s %j %j is %d times as long",
    held.row(async (_rules, accept, one, other, times) => {
      const [first, second] = await Promise.all([sound(accept, one), sound(accept, other)]);
      // The factor is approximate, because a voice does not pronounce two phrases in the same way.
      expect(second.length / first.length / times).toBeGreaterThan(0.85);
      expect(second.length / first.length / times).toBeLessThan(1.15);
    }),
  );

  it("a pause is silent for the given milliseconds, at the engine's rate and at another rate", async () => {
    for (const samplingRate of [16_000, 8000]) {
      const body = { ...mist, text: "one <250> two", pauseBetweenBrackets: true, samplingRate };
      const bytes = await sound("audio/pcm", body);
      const samples = new Int16Array(new Uint8Array(bytes).buffer);
      const silence = longestSilence(samples) / samplingRate;
      // The filter of the resampler extends the edges of the speech by its length.
      expect(silence).toBeCloseTo(0.25, samplingRate === 16_000 ? 2 : 1);
    }
    held.exercised("pauses", "2.1 mist pauseBetweenBrackets");
  });
});

function longestSilence(samples: Int16Array): number {
  let longest = 0;
  let run = 0;
  for (const sample of samples) {
    run = sample === 0 ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}

describe.concurrent("Accept selects the form of the response", () => {
  it.each(negotiation)(
    "%j: %j selects %s",
    held.row(async (_rules, accept, expected) => {
      const body = { ...mist, modelId: "mist", audioFormat: "mp3" };
      const answer = await post(accept, body);
      expect(answer.headers.get("vary")).toBe("Accept");
      if (expected === 406) {
        expect(answer.status).toBe(406);
        const { code, detail } = (await answer.json()) as Problem;
        expect(code).toBe("not_acceptable");
        for (const type of ["audio/wav", "audio/pcm", "application/json", "text/event-stream"]) {
          expect(detail).toContain(type);
        }
        return;
      }
      expect(answer.headers.get("content-type")?.split(";")[0]).toBe(expected);
      expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(100);
    }),
  );
});

describe("the languages", () => {
  const rules: readonly RuleId[] = ["ISO 639", "2.1 mist lang", "lang absent"];
  const firstOf = Object.entries(languages).map(([iso6393, { iso6391 }]) => {
    const voice = voicesOf("mist").find(({ language }) => language === iso6393);
    return [iso6393, iso6391, voice?.id ?? ""] as const;
  });
  it.concurrent.each(firstOf)(
    `%s and %s both name the language of voice %s, and lang may be absent: ${rules}`,
    async (...names) => {
      const [iso6393, iso6391, speaker] = names;
      for (const lang of [iso6393, iso6391, undefined]) {
        expect((await sound("audio/pcm", { speaker, text: "1", lang })).length).toBeGreaterThan(1000);
      }
      held.exercised(...rules);
    },
  );
});

describe("the voices", () => {
  const names =
    "luna astra sirius estelle lyra vespera walnut eliphas arcade atrium eucalyptus fern stucco transom oculus moss";
  it.concurrent.each(names.split(" "))("%s is available for arcana, and not for mist", async (speaker) => {
    expect((await sound("audio/wav", { ...arcana, speaker })).length).toBeGreaterThan(1000);
    await expectRejected("audio/pcm", { ...mist, speaker }, ["/speaker"]);
    held.exercised("2.1 arcana voices", "2.1 arcana speaker");
  });

  it("of the catalogue each belong to a model", () => {
    for (const { id, models } of voices) expect({ id, some: models.length > 0 }).toEqual({ id, some: true });
  });
});

describe("the cloud profile", () => {
  beforeAll(async () => {
    server.profile("cloud");
    await eventually("the cloud profile", async () => {
      const answer = await post("audio/wav", { ...arcana, samplingRate: 11_111 });
      return answer.status === 400;
    });
  });
  afterAll(async () => {
    server.profile("self-hosted");
  });

  it.each(cloudRefusals)(
    "%j: rejects %s %j",
    held.row((_rules, accept, body, pointers) => expectRejected(accept, body, pointers)),
  );

  it.each(cloudRates)("accepts arcana at %i Hz", async (samplingRate) => {
    const bytes = await sound("audio/wav", { ...arcana, samplingRate });
    expect(bytes.readUInt32LE(24)).toBe(samplingRate);
    held.exercised("8 arcana cloud samplingRate", "cloud arcana");
  });

  it("does not restrict the rates and speedAlpha of mist", async () => {
    expect(
      (await sound("audio/pcm", { ...mist, samplingRate: 11_111, speedAlpha: 2 })).length,
    ).toBeGreaterThan(1000);
  });
});
