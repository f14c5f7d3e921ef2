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

/** A client that throws no errors. It records the received data and how the connection ends. */
class RawClient {
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

/** Checks that `/health` reports a healthy API with a reachable model. */
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
  let quickApi: TierProcess;
  beforeAll(async () => {
    quickApi = await startTierProcess("api", files, { SVC_TTS_REQUEST_SECONDS: "2" });
    await eventually("a reachable model", async () => (await fetch(`${quickApi.url}/health`)).ok);
  });
  afterAll(() => quickApi.kill("SIGTERM"));

  it.each<[string, () => string]>([
    ["its headers", () => "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: "],
    ["its body", () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100000"])}`],
  ])("%s gets an error and is disconnected, while other clients are served", async (_what, opening) => {
    const quickPort = Number(new URL(quickApi.url).port);
    const clients: RawClient[] = [];
    const open = () => clients.filter(({ socket }) => !socket.closed);
    const stopDrip = sendEvery(100, () => {
      for (const { socket } of open()) if (socket.writable) socket.write(" ");
    });
    // Fifty connections stay open until another client is served: the test replaces each closed connection.
    const fill = () => {
      while (open().length < 50) {
        const client = new RawClient(false, quickPort);
        client.socket.write(opening());
        clients.push(client);
      }
    };
    try {
      fill();
      let isServed = false;
      const serving = expectHealthy(quickApi).finally(() => {
        isServed = true;
      });
      await eventually("a response for another client", () => {
        if (!isServed) fill();
        return isServed;
      });
      await serving;
      await Promise.all(clients.map(({ closed }) => closed));
    } finally {
      stopDrip();
      for (const { socket } of clients) socket.destroy();
    }
    for (const { read } of clients) {
      expect(read).toMatch(/^HTTP\/1.1 408 /);
      expect(read).toContain('"code":"request_timeout"');
    }
  });
});

describe("a body that does not match its headers", () => {
  it("gets a problem document if the body is shorter and the client half-closes the connection", async () => {
    const client = new RawClient();
    client.socket.end(`POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100"])}{"speaker"`);
    await client.closed;
    expect(client.read).toMatch(/^HTTP\/1.1 (400|408) /);
    expect(client.read).toContain("application/problem+json");
  });

  it("affects no other request if the body is shorter and the client resets the connection", async () => {
    const before = descriptorsOf(api.pid);
    for (let i = 0; i < 5; i++) {
      const client = new RawClient();
      client.socket.write(
        `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["expect: 100-continue", "content-length: 100"])}`,
      );
      await eventually("the server to wait for the body", () =>
        client.read.startsWith("HTTP/1.1 100 Continue"),
      );
      client.socket.write('{"speaker"');
      client.socket.resetAndDestroy();
    }
    // The server may have opened one or two connections to the model.
    await eventually("the server to close the connections", () => descriptorsOf(api.pid) <= before + 2);
    await expectHealthy();
    expect(api.said()).not.toContain("unexpected error");
  });

  it.each<[string, () => string]>([
    ["that is longer", () => post().replace(/content-length: \d+/, "content-length: 10")],
    ["with two different lengths", () => post(["content-length: 3"])],
    ["with a length and chunked encoding", () => post(["transfer-encoding: chunked"])],
    ["with a negative length", () => post().replace(/content-length: \d+/, "content-length: -1")],
    [
      "with invalid chunks",
      () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["transfer-encoding: chunked"])}no\r\n`,
    ],
  ])("%s is rejected as malformed", async (_what, bytes) => {
    const { text } = await rawRequest(api.url, bytes());
    expect(text).toMatch(/HTTP\/1.1 400 /);
    expect(text).toMatch(/"code":"malformed_(http|json)"/);
  });
});

describe("headers", () => {
  it.each([
    ["of 20,000 characters", `x: ${"y".repeat(20_000)}`],
    ["that are 3,000 in number", Array.from({ length: 3000 }, (_, i) => `x${i}: y`).join("\r\n")],
  ])("%s are rejected", async (_what, lines) => {
    const { text } = await rawRequest(api.url, `GET /livez HTTP/1.1\r\nhost: x\r\n${lines}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1.1 431 /);
    expect(text).toContain('"code":"headers_too_large"');
  });

  it("are accepted if they are 500 short ones", async () => {
    const lines = Array.from({ length: 500 }, () => "x: y").join("\r\n");
    const { text } = await rawRequest(
      api.url,
      `GET /livez HTTP/1.1\r\nconnection: close\r\n${lines}\r\nhost: x\r\n\r\n`,
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("without Host are rejected with a problem document in HTTP/1.1, and accepted in HTTP/1.0", async () => {
    const { text } = await rawRequest(api.url, "GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n");
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    expect(text).toContain('"code":"malformed_http"');
    expect((await rawRequest(api.url, "GET /livez HTTP/1.0\r\n\r\n")).text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("with Expect: 100-continue get 100 Continue only if the key is valid", async () => {
    const headers = `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["expect: 100-continue", "connection: close", "accept: audio/wav", `content-length: ${speech.length}`])}`;
    const client = new RawClient();
    client.socket.write(headers);
    await eventually("the server to send 100 Continue", () =>
      client.read.startsWith("HTTP/1.1 100 Continue\r\n\r\n"),
    );
    client.socket.write(speech);
    await client.closed;
    expect(client.read).toContain("HTTP/1.1 200 OK");
    const rejected = new RawClient();
    rejected.socket.write(headers.replace(files.key, "wrong"));
    await rejected.closed;
    expect(rejected.read).toMatch(/^HTTP\/1.1 401 /);
  });

  it("with an unknown expectation are accepted, and the expectation is ignored", async () => {
    const { text } = await rawRequest(
      api.url,
      post(["expect: tea", "connection: close", "accept: audio/wav"]),
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("many requests", () => {
  it("on one connection get their responses in order", async () => {
    const many = Array.from({ length: 20 }, (_, i) => post([`x-request-id: r${i}`, "accept: audio/pcm"]));
    const last = "GET /livez HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n";
    const { text } = await rawRequest(api.url, many.join("") + last);
    const ids = [...text.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id);
    expect(ids).toEqual([...many.map((_, i) => `r${i}`), "last"]);
  });

  it("on one connection end when the client closes the connection", async () => {
    model.script = (call) => call.head(24_000); // The model sends no audio.
    const client = new RawClient();
    client.socket.write(post(["accept: audio/pcm"]).repeat(20));
    await eventually("20 streams in flight", async () => (await inFlight()) === 20);
    client.socket.destroy();
    await eventually("no stream in flight", async () => (await inFlight()) === 0);
    model.script = speakTone(0.1);
  });

  it("on a thousand connections, most of them incomplete, delay no other client and leak no file descriptor", async () => {
    const wave = async () => {
      const clients = Array.from({ length: 1000 }, () => new RawClient());
      try {
        await Promise.all(clients.map(({ socket }) => once(socket, "connect")));
        const [half, whole] = [clients.slice(0, 900), clients.slice(900)];
        for (const { socket } of half) socket.write(post().slice(0, -20));
        for (const { socket } of whole) socket.write(post(["accept: audio/pcm"]));
        await eventually("the responses to all complete requests", () =>
          whole.every(({ read }) => read.includes("\r\n\r\n")),
        );
        for (const { read } of whole) expect(read).toMatch(/^HTTP\/1.1 200 OK/);
        await expectHealthy();
      } finally {
        for (const { socket } of clients) socket.destroy();
        await Promise.all(clients.map(({ closed }) => closed));
      }
    };
    const descriptors = descriptorsOf(api.pid);
    for (const number of ["first", "second"]) {
      await wave();
      // A connection to the model may stay open.
      await eventually(
        `the server to close the connections of the ${number} wave`,
        () => descriptorsOf(api.pid) <= descriptors + 10,
      );
    }
    expect(await inFlight()).toBe(0);
  });
});

describe("the memory of concurrent requests is limited", () => {
  let small: TestApi;
  /** The model waits for this promise, which the test resolves. */
  let gate = Promise.withResolvers<void>();
  const heldBytes = 8 * mebibyte;
  /** The clock of the server's time limits. */
  let clock = new FakeClock();
  const start = async () => {
    clock = new FakeClock();
    gate = Promise.withResolvers<void>();
    // The timeouts are long, because the model waits for the gate.
    const timing = { firstAudioTimeoutMs: 600_000, stallTimeoutMs: 600_000 };
    const limits = { heldBytes, heldWaitMs: 1_000 };
    small = await startTestApi({ arcana: routeTo(model.url) }, { limits, timing }, { clock });
  };
  afterEach(async () => {
    gate.resolve();
    await small.stop();
    model.script = speakTone(0.1);
  });

  /** The server counts four times the size of a body, so two of these bodies fit into the limit. */
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

  it("with large bodies: the server reads only the bodies that fit, and the others afterwards", async () => {
    await start();
    let [now, most] = [0, 0];
    const speak = speakTone(0.1);
    model.script = async (call) => {
      most = Math.max(most, ++now);
      await gate.promise;
      now--; // The next request may arrive before the end of this request.
      await speak(call);
    };
    const calls = model.calls.length;
    const answers = Array.from({ length: 12 }, send);
    await eventually("two requests at the model", () => now === 2);
    gate.resolve();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    expect({ most, calls: model.calls.length - calls }).toEqual({ most: 2, calls: 12 });
  });

  it("with large bodies: a request that waited too long is rejected with Retry-After", async () => {
    await start();
    let now = 0;
    model.script = (call) => {
      now++;
      return gate.promise.then(() => speakTone(0.1)(call));
    };
    const fitting: Promise<Response>[] = [];
    for (const count of [1, 2]) {
      fitting.push(send());
      await eventually(`${count} requests at the model`, () => now === count);
    }
    let late: Response | undefined;
    const waiting = send().then((answer) => {
      late = answer;
    });
    await eventuallyOn(clock, "the end of the waiting time", () => late !== undefined, 100);
    await waiting;
    expect(late?.status).toBe(503);
    expect(late?.headers.get("retry-after")).toBe("2");
    gate.resolve();
    for (const { status } of await Promise.all(fitting)) expect(status).toBe(200);
    expect((await send()).status).toBe(200);
  });

  it("with large JSON responses: the responses that fit are complete, and the last request is rejected", async () => {
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
    const request = { speaker: "luna", modelId: "arcana", text: "Hello.", audioFormat: "wav" };
    const json = () => small.post(request, { accept: "application/json" });
    const fitting = Array.from({ length: 6 }, json);
    const encoded = () => sampleOf(small.url, "svc_tts_audio_seconds_total{");
    await eventually("six responses in memory", async () => (await encoded()) === 6 * seconds);
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
  it("that reads nothing loses its stream, and a client that reads slowly keeps its stream", async () => {
    // The API tier and the clients share this process, so that a delay of the client also delays the API
    // tier.
    const stallingApi = await startTestApi({ arcana: routeTo(model.url) }, { limits: { stallMs: 1_000 } });
    const stallingPort = Number(new URL(stallingApi.url).port);
    const request = post(["accept: audio/pcm"]).replace(files.key, stallingApi.key);
    const begin = () => {
      const client = new RawClient(true, stallingPort);
      client.socket.write(request);
      return client;
    };
    const streams = () => inFlight(stallingApi);
    model.script = speakOn();
    const slow = begin();
    let bytesRead = 0;
    const stopReading = sendEvery(20, () => {
      bytesRead += (slow.socket.read() as Buffer | null)?.length ?? 0;
    });
    onTestFinished(async () => {
      stopReading();
      await stallingApi.stop();
      model.script = speakTone(0.1);
    });
    // The stream of the slow client outlasts the time limits of three clients that read nothing.
    for (const round of [1, 2, 3]) {
      const before = bytesRead;
      const idle = begin();
      await eventually(`the stream of idle client ${round}`, async () => (await streams()) === 2);
      await eventually(`the end of idle client ${round}`, async () => (await streams()) === 1);
      expect(slow.socket.closed).toBe(false);
      expect(bytesRead).toBeGreaterThan(before);
      idle.socket.destroy();
    }
    slow.socket.destroy();
    await eventually("no stream in flight", async () => (await streams()) === 0);
  });

  it("of HTTP/1.0 gets a response without chunked encoding, and a reset if the stream is interrupted", async () => {
    const request = post(["accept: audio/wav"]).replace("HTTP/1.1", "HTTP/1.0");
    const whole = new RawClient();
    whole.socket.write(request);
    await whole.closed;
    expect(whole.ending).toBe("end");
    expect(whole.read).not.toMatch(/transfer-encoding/i);
    expect(whole.read.slice(whole.read.indexOf("\r\n\r\n") + 4)).toHaveLength(44 + 4800);
    const broken = new RawClient();
    model.script = async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await eventually("the client to receive audio", () => broken.read.includes("RIFF"));
      call.cut();
    };
    broken.socket.write(request);
    await broken.closed;
    expect(broken.read).toContain("RIFF");
    expect(broken.ending).toBe("ECONNRESET");
    model.script = speakTone(0.1);
  });
});
