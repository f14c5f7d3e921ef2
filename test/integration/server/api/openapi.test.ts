import { readFileSync } from "node:fs";
import { join } from "node:path";
import Schema from "typebox/schema";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

interface Operation {
  readonly responses: Record<string, { content: Record<string, { schema?: object }> }>;
}
interface Document {
  readonly paths: Record<string, Record<"get" | "post", Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}

const committed = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../../docs/openapi.json"), "utf8"),
) as Document;

let api: TestApi;
let model: ScriptedModel;

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
  api = await startTestApi(model.url);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

/**
 * Checks that the document has the status and media type of the response, and that a JSON body matches its
 * schema.
 */
async function expectDescribed(path: string, method: "get" | "post", answer: Response): Promise<void> {
  const type = answer.headers.get("content-type")?.split(";")[0] ?? "";
  const described = committed.paths[path]?.[method].responses[String(answer.status)];
  expect(Object.keys(described?.content ?? {})).toContain(type);
  const schema = described?.content[type]?.schema;
  if (!type.endsWith("json")) return void (await answer.arrayBuffer());
  const name = (schema as { $ref?: string }).$ref?.split("/").at(-1);
  const resolved = name === undefined ? schema : committed.components.schemas[name];
  const body: unknown = await answer.json();
  expect({ body, fits: Schema.Check(resolved as object, body) }).toMatchObject({ fits: true });
}

describe("GET /openapi.json", () => {
  it("serves the committed document", async () => {
    expect(await (await fetch(`${api.url}/openapi.json`)).json()).toEqual(committed);
  });

  it("refers only to schemas that exist", () => {
    const names = [...JSON.stringify(committed).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, n]) => n,
    );
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) expect(committed.components.schemas).toHaveProperty(name as string);
  });
});

describe("responses match the document", () => {
  it.each(
    Object.entries(committed.paths)
      .filter(([, methods]) => methods.get)
      .map(([path]) => path),
  )("at GET %s", async (path) => {
    await expectDescribed(path, "get", await fetch(`${api.url}${path}`));
  });

  const mist = { speaker: "abbie", text: "x" };
  it.each<[path: string, body: object, headers: Record<string, string>]>([
    ["/v1/svc-tts", { ...mist, audioFormat: "mp3" }, { accept: "application/json" }],
    ["/v1/svc-tts", mist, { accept: "text/event-stream" }],
    ["/v1/svc-tts", mist, { accept: "audio/basic" }],
    ["/v1/svc-tts", { ...mist, samplingRate: 1 }, { accept: "audio/pcm" }],
    ["/v1/svc-tts", mist, { accept: "audio/x-unknown" }],
    ["/v1/svc-tts", mist, { authorization: "" }],
    ["/v1/svc-tts", mist, { "content-type": "text/plain" }],
    ["/v1/audio/speech", { model: "mist", voice: "abbie", input: "x" }, {}],
    ["/v1/audio/speech", { model: "mist", voice: "abbie", input: "x", stream_format: "sse" }, {}],
    ["/v1/audio/speech", { model: "mist", voice: "abbie", input: "x", response_format: "aac" }, {}],
    ["/v1/audio/speech", {}, { authorization: "" }],
  ])("at POST %s with body %o and headers %o", async (path, body, headers) => {
    await expectDescribed(path, "post", await api.post(body, headers, { path }));
  });

  it("including the limits of each field of a request", () => {
    const request = committed.components.schemas.SpeechRequest as object;
    const fits = (more: object) => Schema.Check(request, { ...mist, ...more });
    expect(fits({ speedAlpha: null, unknown: 1 })).toBe(true);
    for (const wrong of [
      { speedAlpha: 0 },
      { text: null },
      { top_p: 0 },
      { samplingRate: 0.5 },
      { modelId: "x" },
    ]) {
      expect({ wrong, fits: fits(wrong) }).toEqual({ wrong, fits: false });
    }
  });
});
