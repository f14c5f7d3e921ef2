import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { eventuallyOn, FakeClock } from "../../support/fake-clock.ts";
import { sendEvery } from "../../support/peers.ts";
import { rawRequest, routeTo, sampleOf, startTestApi, type TestApi } from "../../support/server/api-tier.ts";
import {
  type Call,
  type ScriptedModel,
  speakOn,
  speakTone,
  startScriptedModel,
} from "../../support/server/scripted-model.ts";
import {
  descriptorsOf,
  makeTierFiles,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/server/tier-process.ts";

const mebibyte = 1024 * 1024;

let files: TierFiles;
let model: ScriptedModel;
let api: TierProcess;
let port: number;

beforeAll(async () => {
  files = await makeTierFiles();
  model = await startScriptedModel(speakTone(0.1));
  files.route({ mist: routeTo(model.url), arcana: routeTo(model.url) });
  api = await startTierProcess("api", files);
  port = Number(new URL(api.url).port);
});

afterAll(async () => {
  await api.kill("SIGTERM");
  await model.close();
  files.remove();
});

const speech = JSON.stringify({ speaker: "luna", modelId: "arcana", text: "Hello." });

function headersOf(more: readonly string[] = []): string {
  const usual = ["host: x", `authorization: Bearer ${files.key}`, "content-type: application/json"];
  return [...usual, ...more, "", ""].join("\r\n");
}

function post(more: readonly string[] = [], body = speech): string {
  return `POST /v1/svc-tts HTTP/1.1\r\n${headersOf([`content-length: ${body.length}`, ...more])}${body}`;
}

/** A client that never throws. It records the received data and the end of the connection. */
class Caller {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  ending = "";
  #read = "";

  constructor(readsNothing = false, atPort = port) {
    this.socket = connect(atPort, "127.0.0.1");
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.ending = error.code ?? "";
    });
    if (!readsNothing) {
      this.socket.on("data", (piece) => {
        if (this.#read.length < mebibyte) this.#read += piece.toString("latin1");
      });
      this.socket.on("end", () => {
        this.ending = "end";
      });
    }
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
  }

  get read(): string {
    return this.#read;
  }
}

/** Checks that `/health` responds, with the true state. */
async function expectHealthy({ url } = api): Promise<void> {
  const answer = await fetch(`${url}/health`);
  expect({ status: answer.status, ...((await answer.json()) as object) }).toMatchObject({
    status: 200,
    apiStatus: "ok",
    modelReachable: true,
  });
}

const inFlight = ({ url }: { readonly url: string } = api) =>
  sampleOf(url, 'svc_tts_streams{model="arcana"}');

describe("a client that sends slowly", () => {
  let hasty: TierProcess;
  beforeAll(async () => {
    hasty = await startTierProcess("api", files, { SVC_TTS_REQUEST_SECONDS: "2" });
    await eventually("the model is reachable", async () => (await fetch(`${hasty.url}/health`)).ok);
  });
  afterAll(() => hasty.kill("SIGTERM"));

  it.each<[string, () => string]>([
    ["its headers", () => "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: "],
    ["its body", () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100000"])}`],
  ])("%s gets an error and its connection is closed, while others are served", async (_what, opening) => {
    const hastyPort = Number(new URL(hasty.url).port);
    const callers: Caller[] = [];
    const open = () => callers.filter(({ socket }) => !socket.closed);
    const stopDrip = sendEvery(100, () => {
      for (const { socket } of open()) if (socket.writable) socket.write(" ");
    });
    // Each closed connection is replaced, so that fifty stay open until another client is served.
    const fill = () => {
      while (open().length < 50) {
        const caller = new Caller(false, hastyPort);
        caller.socket.write(opening());
        callers.push(caller);
      }
    };
    try {
      fill();
      let isServed = false;
      const serving = expectHealthy(hasty).finally(() => {
        isServed = true;
      });
      await eventually("another client is served", () => {
        if (!isServed) fill();
        return isServed;
      });
      await serving;
      await Promise.all(callers.map(({ closed }) => closed));
    } finally {
      stopDrip();
      for (const { socket } of callers) socket.destroy();
    }
    for (const { read } of callers) {
      expect(read).toMatch(/^HTTP\/1.1 408 /);
      expect(read).toContain('"code":"request_timeout"');
    }
  });
});

describe("a body that does not match its headers", () => {
  it("and is shorter, with the connection half-closed, is a problem", async () => {
    const caller = new Caller();
    caller.socket.end(`POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100"])}{"speaker"`);
    await caller.closed;
    expect(caller.read).toMatch(/^HTTP\/1.1 (400|408) /);
    expect(caller.read).toContain("application/problem+json");
  });

  it("and is shorter, with the connection reset, affects no other request", async () => {
    const before = descriptorsOf(api.pid);
    for (let i = 0; i < 5; i++) {
      const caller = new Caller();
      caller.socket.write(
        `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["expect: 100-continue", "content-length: 100"])}`,
      );
      await eventually("its body is waited for", () => caller.read.startsWith("HTTP/1.1 100 Continue"));
      caller.socket.write('{"speaker"');
      caller.socket.resetAndDestroy();
    }
    // one or two connections to the model may have been opened meanwhile
    await eventually("their connections are gone", () => descriptorsOf(api.pid) <= before + 2);
    await expectHealthy();
    expect(api.said()).not.toContain("unexpected error");
  });

  it.each<[string, () => string]>([
    ["longer", () => post().replace(/content-length: \d+/, "content-length: 10")],
    ["of two lengths", () => post(["content-length: 3"])],
    ["of a length and chunked", () => post(["transfer-encoding: chunked"])],
    ["of a length below nothing", () => post().replace(/content-length: \d+/, "content-length: -1")],
    [
      "of chunks that are none",
      () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["transfer-encoding: chunked"])}no\r\n`,
    ],
  ])("%s is refused as malformed", async (_what, bytes) => {
    const { text } = await rawRequest(api.url, bytes());
    expect(text).toMatch(/HTTP\/1.1 400 /);
    expect(text).toMatch(/"code":"malformed_(http|json)"/);
  });
});

describe("headers", () => {
  it.each([
    ["one that is huge", `x: ${"y".repeat(20_000)}`],
    ["many that are huge together", Array.from({ length: 3000 }, (_, i) => `x${i}: y`).join("\r\n")],
  ])("%s are refused", async (_what, lines) => {
    const { text } = await rawRequest(api.url, `GET /livez HTTP/1.1\r\nhost: x\r\n${lines}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1.1 431 /);
    expect(text).toContain('"code":"headers_too_large"');
  });

  it("are accepted in great number if they are small", async () => {
    const lines = Array.from({ length: 500 }, () => "x: y").join("\r\n");
    const { text } = await rawRequest(
      api.url,
      `GET /livez HTTP/1.1\r\nconnection: close\r\n${lines}\r\nhost: x\r\n\r\n`,
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("without Host are refused with a problem document in HTTP/1.1, and accepted in HTTP/1.0", async () => {
    const { text } = await rawRequest(api.url, "GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n");
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    expect(text).toContain('"code":"malformed_http"');
    expect((await rawRequest(api.url, "GET /livez HTTP/1.0\r\n\r\n")).text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("that expect 100-continue get it once the key is valid", async () => {
    const asking = `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["expect: 100-continue", "connection: close", "accept: audio/wav", `content-length: ${speech.length}`])}`;
    const caller = new Caller();
    caller.socket.write(asking);
    await eventually("the server sends 100 Continue", () =>
      caller.read.startsWith("HTTP/1.1 100 Continue\r\n\r\n"),
    );
    caller.socket.write(speech);
    await caller.closed;
    expect(caller.read).toContain("HTTP/1.1 200 OK");
    const refused = new Caller();
    refused.socket.write(asking.replace(files.key, "wrong"));
    await refused.closed;
    expect(refused.read).toMatch(/^HTTP\/1.1 401 /);
  });

  it("with another expectation are accepted as if they had none", async () => {
    const { text } = await rawRequest(
      api.url,
      post(["expect: tea", "connection: close", "accept: audio/wav"]),
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("many requests", () => {
  it("on one connection get responses in order", async () => {
    const many = Array.from({ length: 20 }, (_, i) => post([`x-request-id: r${i}`, "accept: audio/pcm"]));
    const last = "GET /livez HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n";
    const { text } = await rawRequest(api.url, many.join("") + last);
    const ids = [...text.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id);
    expect(ids).toEqual([...many.map((_, i) => `r${i}`), "last"]);
  });

  it("on one connection that is closed leave nothing in flight", async () => {
    model.script = (call) => call.head(24_000); // no audio was sent
    const caller = new Caller();
    caller.socket.write(post(["accept: audio/pcm"]).repeat(20));
    await eventually("all are in flight", async () => (await inFlight()) === 20);
    caller.socket.destroy();
    await eventually("none is in flight", async () => (await inFlight()) === 0);
    model.script = speakTone(0.1);
  });

  it("on a thousand connections, most of them half sent, delay no other client and leave nothing behind", async () => {
    const wave = async () => {
      const callers = Array.from({ length: 1000 }, () => new Caller());
      try {
        await Promise.all(callers.map(({ socket }) => once(socket, "connect")));
        const [half, whole] = [callers.slice(0, 900), callers.slice(900)];
        for (const { socket } of half) socket.write(post().slice(0, -20));
        for (const { socket } of whole) socket.write(post(["accept: audio/pcm"]));
        await eventually("all of the whole ones are answered", () =>
          whole.every(({ read }) => read.includes("\r\n\r\n")),
        );
        for (const { read } of whole) expect(read).toMatch(/^HTTP\/1.1 200 OK/);
        await expectHealthy();
      } finally {
        for (const { socket } of callers) socket.destroy();
        await Promise.all(callers.map(({ closed }) => closed));
      }
    };
    const descriptors = descriptorsOf(api.pid);
    for (const number of ["first", "second"]) {
      await wave();
      // a connection to the model may stay open
      await eventually(
        `the connections of the ${number} wave are closed`,
        () => descriptorsOf(api.pid) <= descriptors + 10,
      );
    }
    expect(await inFlight()).toBe(0);
  });
});

describe("the memory of concurrent requests is limited", () => {
  let small: TestApi;
  /** The test opens this gate. */
  let gate = Promise.withResolvers<void>();
  const heldBytes = 8 * mebibyte;
  /** The only clock for the server's time limits. */
  let clock = new FakeClock();
  const start = async () => {
    clock = new FakeClock();
    gate = Promise.withResolvers<void>();
    // the gate controls the progress
    const timing = { firstAudioTimeoutMs: 600_000, stallTimeoutMs: 600_000 };
    const limits = { heldBytes, heldWaitMs: 1_000 };
    small = await startTestApi({ arcana: routeTo(model.url) }, { limits, timing }, { clock });
  };
  afterEach(async () => {
    gate.resolve();
    await small.stop();
    model.script = speakTone(0.1);
  });

  /** Each body counts four times: two of these fit into the limit, and a third does not. */
  const large = JSON.stringify({
    speaker: "luna",
    modelId: "arcana",
    text: "word ".repeat((0.9 * mebibyte) / 5),
  });
  const send = async () => {
    const answer = await small.post(large, { accept: "audio/pcm" });
    await answer.arrayBuffer();
    return answer;
  };

  it("with large bodies, as many as fit are read, and the others follow", async () => {
    await start();
    let [now, most] = [0, 0];
    const speak = speakTone(0.1);
    model.script = async (call) => {
      most = Math.max(most, ++now);
      await gate.promise;
      now--; // the next body may arrive before the end of this one
      await speak(call);
    };
    const calls = model.calls.length;
    const answers = Array.from({ length: 12 }, send);
    await eventually("two are with the model", () => now === 2);
    gate.resolve();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    expect({ most, calls: model.calls.length - calls }).toEqual({ most: 2, calls: 12 });
  });

  it("with large bodies, a request that waited too long is refused with Retry-After", async () => {
    await start();
    let now = 0;
    model.script = (call) => {
      now++;
      return gate.promise.then(() => speakTone(0.1)(call));
    };
    const fitting: Promise<Response>[] = [];
    for (const count of [1, 2]) {
      fitting.push(send());
      await eventually(`${count} are with the model`, () => now === count);
    }
    let late: Response | undefined;
    const waiting = send().then((answer) => {
      late = answer;
    });
    await eventuallyOn(clock, "its time is over", () => late !== undefined, 100);
    await waiting;
    expect(late?.status).toBe(503);
    expect(late?.headers.get("retry-after")).toBe("2");
    gate.resolve();
    for (const { status } of await Promise.all(fitting)) expect(status).toBe(200);
    expect((await send()).status).toBe(200);
  });

  it("with large JSON responses, those that fit are complete, and the latest one is refused", async () => {
    await start();
    const seconds = 25;
    const second = new Int16Array(24_000);
    const piece = (call: Call) => call.send({ kind: "audio", samples: second }); // 48,000 bytes of WAV
    model.script = async (call) => {
      await call.head(24_000);
      for (let i = 0; i < seconds; i++) await piece(call);
      await gate.promise;
      await call.end(seconds * 24_000);
    };
    const ask = { speaker: "luna", modelId: "arcana", text: "Hello.", audioFormat: "wav" };
    const json = () => small.post(ask, { accept: "application/json" });
    const fitting = Array.from({ length: 6 }, json);
    const encoded = () => sampleOf(small.url, "svc_tts_audio_seconds_total{");
    await eventually("six answers are held", async () => (await encoded()) === 6 * seconds);
    model.script = speakOn();
    const last = await json();
    expect(last.status).toBe(503);
    expect(await last.json()).toMatchObject({ code: "overloaded" });
    gate.resolve();
    for (const answer of await Promise.all(fitting)) {
      expect(answer.status).toBe(200);
      const { byteLength } = await answer.arrayBuffer();
      expect(byteLength).toBe(19 + 4 * Math.ceil((44 + seconds * 48_000) / 3));
    }
  });
});

describe("a client", () => {
  it("that reads nothing loses its stream, and one that reads slowly keeps it", async () => {
    // all in this process, so that a delay of the reader also delays the code that judges it
    const judge = await startTestApi({ arcana: routeTo(model.url) }, { limits: { stallMs: 1_000 } });
    const judgePort = Number(new URL(judge.url).port);
    const request = post(["accept: audio/pcm"]).replace(files.key, judge.key);
    const begin = () => {
      const caller = new Caller(true, judgePort);
      caller.socket.write(request);
      return caller;
    };
    const streams = () => inFlight(judge);
    model.script = speakOn();
    const slow = begin();
    let slowly = 0;
    const stopSips = sendEvery(20, () => {
      slowly += (slow.socket.read() as Buffer | null)?.length ?? 0;
    });
    onTestFinished(async () => {
      stopSips();
      await judge.stop();
      model.script = speakTone(0.1);
    });
    // the slow client outlives the whole time limit of each idle client that is cut
    for (const round of [1, 2, 3]) {
      const before = slowly;
      const lazy = begin();
      await eventually(`lazy reader ${round} speaks`, async () => (await streams()) === 2);
      await eventually(`lazy reader ${round} is cut`, async () => (await streams()) === 1);
      expect(slow.socket.closed).toBe(false);
      expect(slowly).toBeGreaterThan(before);
      lazy.socket.destroy();
    }
    slow.socket.destroy();
    await eventually("none is in flight", async () => (await streams()) === 0);
  });

  it("of HTTP/1.0 gets no chunks, and an interrupted stream ends in a reset", async () => {
    const ask = post(["accept: audio/wav"]).replace("HTTP/1.1", "HTTP/1.0");
    const whole = new Caller();
    whole.socket.write(ask);
    await whole.closed;
    expect(whole.ending).toBe("end");
    expect(whole.read).not.toMatch(/transfer-encoding/i);
    expect(whole.read.slice(whole.read.indexOf("\r\n\r\n") + 4)).toHaveLength(44 + 4800);
    const broken = new Caller();
    model.script = async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await eventually("it is heard", () => broken.read.includes("RIFF"));
      call.cut();
    };
    broken.socket.write(ask);
    await broken.closed;
    expect(broken.read).toContain("RIFF");
    expect(broken.ending).toBe("ECONNRESET");
    model.script = speakTone(0.1);
  });
});
