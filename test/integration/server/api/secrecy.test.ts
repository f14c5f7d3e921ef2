import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freeOffset } from "../../../../tools/bench/common/running-server.ts";
import { eventually } from "../../../support/eventually.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { childrenOf, commandOf } from "../../../support/processes.ts";
import { rawRequest } from "../../../support/server/api-tier.ts";
import { type OtlpReceiver, startOtlpReceiver } from "../../../support/server/otlp.ts";

const main = fileURLToPath(new URL("../../../../server/main.ts", import.meta.url));
const key = "my-own-Kwyjibo-key";
/** A marker in every text. No part of it may occur in any output. */
const word = "Zyxquorvle";
const parts = ["zyxq", "quorv", "orvle", "kwyji"];

const home = folderOfTests("secrecy");
let offset: number;
let url: string;
let child: ChildProcess;
let receiver: OtlpReceiver;
const outputPieces: Buffer[] = [];
const output = () => Buffer.concat(outputPieces).toString();

/** Returns the access log of one tier: one line for each request. */
function accessLines(tier: { tier?: string; name?: string }): Record<string, unknown>[] {
  return output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(
      ({ msg, ...facts }) => msg === "request" && Object.entries(tier).every(([k, v]) => facts[k] === v),
    );
}

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  offset = await freeOffset();
  url = `http://127.0.0.1:${8000 + offset}`;
  child = spawn(process.execPath, [main, "all"], {
    env: {
      ...process.env,
      HOME: home,
      XDG_DATA_HOME: "",
      PORT_OFFSET: String(offset),
      DEV: "",
      SVC_TTS_API_KEY: key,
      SVC_TTS_LOG_LEVEL: "trace",
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => outputPieces.push(piece));
  const ready = () => {
    if (child.exitCode !== null) throw new Error(`svc-tts ended with status ${child.exitCode}: ${output()}`);
    return output().includes("==> ready");
  };
  await eventually("the line that says that svc-tts is ready", ready);
});
afterAll(async () => {
  child.kill("SIGKILL");
  await receiver.close();
});

/** Kills the engine processes of the tier that serves arcana. */
function killEngines(): void {
  const arcana = childrenOf(child.pid ?? 0).find((pid) => commandOf(pid).at(-1) === "arcana");
  for (const pid of childrenOf(arcana ?? 0)) process.kill(pid, "SIGKILL");
}

/** With this header, no idle connection delays the end of the process. */
const closing = { connection: "close" };
let posts = 0;
async function post(
  body: unknown,
  headers: Record<string, string> = {},
  path = "/v1/svc-tts",
  onHead?: { readonly signal: AbortSignal; readonly call: () => void },
): Promise<number> {
  posts++;
  const answer = await fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...closing,
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(onHead && { signal: onHead.signal }),
  });
  onHead?.call();
  await answer.arrayBuffer();
  return answer.status;
}

const text = `Hello ${word}, [${word}] costs $5 at ${word}@example.com. ${word}!`;
const mist = { speaker: "alan", modelId: "mist", text };
const arcana = { speaker: "luna", modelId: "arcana", text };

describe("at the log level trace, with traces on", () => {
  it("requests of every kind get their responses", async () => {
    for (const accept of ["audio/wav", "audio/pcm", "audio/mpeg", "audio/ogg", "text/event-stream"]) {
      const rate = { samplingRate: 24_000 };
      const both = [mist, arcana].map((body) => post({ ...body, ...rate }, { accept }));
      expect(await Promise.all(both)).toEqual([200, 200]);
    }
    expect(await post({ ...mist, audioFormat: "mp3", saveOovs: true }, { accept: "application/json" })).toBe(
      200,
    );
    const openai = { model: "mist", voice: "alan", input: text };
    expect(await post(openai, {}, "/v1/audio/speech")).toBe(200);
    const invalid: [unknown, Record<string, string>?][] = [
      [{ ...mist, phonemizeBetweenBrackets: true, text: `say {${word}!!}` }],
      [{ ...mist, inlineSpeedAlpha: "2,3,4" }],
      [{ ...mist, text: word.repeat(60) }],
      [{ ...mist, text: { [word]: word } }],
      [{ ...mist, text: [word] }],
      [{ ...mist, lang: "deu" }],
      [{ ...mist, modelId: "mist", speaker: "no-such-voice" }],
      [`{"speaker":"alan","text":"${word}`],
      [`${word}`],
      [text, { "content-type": "text/plain" }],
      [text, { "content-type": "application/json", "content-encoding": "gzip" }],
      [mist, { accept: "audio/x-unknown" }],
    ];
    for (const [body, headers] of invalid) {
      const status = await post(body, { accept: "application/json", ...headers });
      expect(status, JSON.stringify([body, headers])).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
    }
    expect(await post(mist, { authorization: `Bearer ${key}x` })).toBe(401);
    expect(await post(mist, { authorization: `Basic ${btoa(`${key}:${word}`)}` })).toBe(401);
    expect(await post({ ...openai, input: word.repeat(500) }, {}, "/v1/audio/speech")).toBe(400);
    await fetch(`${url}/v1/svc-tts?text=${word}&key=${key}`, { headers: closing });
    await fetch(`${url}/${word}`, { headers: closing });
    await rawRequest(url, `${word} ${key}\r\n\r\n`);
    await rawRequest(url, `GET / HTTP/1.1\r\nx: ${word.repeat(5000)}\r\n\r\n`);
  });

  it("a client can disconnect, and an engine can die during a request", async () => {
    const long = { ...arcana, text: `${text} `.repeat(400) };
    const hangUp = new AbortController();
    const disconnected = post(long, { accept: "audio/wav" }, "/v1/svc-tts", {
      signal: hangUp.signal,
      call: () => hangUp.abort(),
    });
    await expect(disconnected).rejects.toThrow();
    await eventually("the disconnected client in the access log", () =>
      accessLines({ tier: "api" }).some(({ clientGone }) => clientGone === true),
    );
    const enough = new AbortController();
    const failedOrRetried = post(long, { accept: "audio/wav" }, "/v1/svc-tts", {
      signal: enough.signal,
      call: killEngines,
    }).catch(() => undefined);
    await eventually("the end of an engine", () => output().includes("an engine process ended"));
    enough.abort(); // A retried request would run for half an hour.
    await failedOrRetried;
  });

  it("the access log has one line for each request, with the API key and the duration", async () => {
    const id = "a-request-of-my-own";
    await post(mist, { accept: "audio/wav", "x-request-id": id });
    const line = () => accessLines({ tier: "api" }).find(({ requestId }) => requestId === id);
    await eventually("the line", () => line() !== undefined);
    expect(line()).toMatchObject({
      method: "POST",
      endpoint: "/v1/svc-tts",
      status: 200,
      keyId: expect.any(String),
      model: "mist",
      voice: "alan",
      format: "wav",
      form: "stream",
      rate: 22_050,
      durationMs: expect.any(Number),
      firstAudioMs: expect.any(Number),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(Number(line()?.audioSeconds)).toBeGreaterThan(1);
    const invocation = () => accessLines({ name: "mist" }).find(({ requestId }) => requestId === id);
    await eventually("the model tier's line", () => invocation() !== undefined);
    expect(invocation()).toMatchObject({
      traceId: line()?.traceId,
      model: "mist",
      voice: "alan",
      status: 200,
    });
    const mine = () => accessLines({ tier: "api" }).filter(({ method }) => method === "POST");
    await eventually("a line for each request", () => mine().length === posts);
  });

  it("no output, metric or trace contains the text or the key", async () => {
    const metrics = await Promise.all(
      [8000, 8080, 8090].map(async (port) =>
        (await fetch(`http://127.0.0.1:${port + offset}/metrics`, { headers: closing })).text(),
      ),
    );
    await eventually("traces", () => receiver.spans().length > 50);
    child.kill("SIGTERM");
    await once(child, "exit");
    const everything = {
      log: output().replaceAll(/^.*curl .*$/gm, ""),
      metrics: metrics.join("\n"),
      traces: receiver.posts.map(({ body }) => body.toString()).join("\n"),
    };
    for (const [where, content] of Object.entries(everything)) {
      expect(content.length, where).toBeGreaterThan(1_000);
      const lower = content.toLowerCase();
      for (const part of parts) {
        const at = lower.indexOf(part);
        expect(at < 0 ? "" : content.slice(Math.max(0, at - 200), at + 100), `${part} in ${where}`).toBe("");
      }
    }
  });
});
