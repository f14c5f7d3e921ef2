import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Failure } from "../../../server/contract/errors.ts";
import type { Invocation } from "../../../server/contract/speech.ts";
import { encodeFrame, type WireFrame } from "../../../server/contract/wire.ts";
import { pseudoRandom } from "../seed.ts";

/** One invocation of a scripted model tier, with methods that send the response. */
export interface Call {
  readonly invocation: Invocation;
  readonly headers: IncomingMessage["headers"];
  /** Resolves when the client disconnects. */
  readonly aborted: Promise<void>;
  /** Whether a frame waits because the client does not read (back-pressure). */
  readonly isHeldUp: boolean;
  send(frame: WireFrame): Promise<void>;
  head(rate: number): Promise<void>;
  tone(samples: number, rate: number): Promise<void>;
  end(samples: number): Promise<void>;
  /** Resolves when the kernel has accepted every frame. */
  flushed(): Promise<void>;
  cut(): void;
  close(): void;
  refuse(status: number, problem: object, headers?: Record<string, string>): void;
}

export interface ScriptedModel {
  readonly url: string;
  readonly calls: Call[];
  ready: boolean;
  script: (call: Call) => Promise<void> | void;
  close(): Promise<void>;
}

/**
 * Starts a simulated model tier on a real socket with the real wire format. A script of the test sends the
 * responses.
 */
export async function startScriptedModel(script: ScriptedModel["script"]): Promise<ScriptedModel> {
  const server = createServer((request, response) => {
    if (request.url === "/ready") {
      response.writeHead(model.ready ? 200 : 503).end();
      return;
    }
    if (request.method !== "POST") {
      response.writeHead(404).end();
      return;
    }
    void answer(model, request, response);
  });
  const url = await listen(server);
  const model: ScriptedModel = {
    url,
    calls: [],
    ready: true,
    script,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return model;
}

function sine(count: number, rate: number, from = 0): Int16Array {
  return Int16Array.from({ length: count }, (_, i) =>
    Math.round(12_000 * Math.sin((2 * Math.PI * 440 * (from + i)) / rate)),
  );
}

/** Returns a script that sends a tone in pieces of a tenth of a second. */
export function speakTone(seconds: number, rate = 24_000) {
  return async (call: Call): Promise<void> => {
    await call.head(rate);
    const total = seconds * rate;
    for (let at = 0; at < total; at += rate / 10) await call.tone(Math.min(rate / 10, total - at), rate);
    await call.end(total);
  };
}

/** Returns a script that sends a tenth of a second of a tone, and ends after `released` resolves. */
export function speakUntil(released: Promise<unknown>, rate = 24_000) {
  return async (call: Call): Promise<void> => {
    await call.head(rate);
    await call.tone(rate / 10, rate);
    await released;
    await call.end(rate / 10);
  };
}

/**
 * Returns a script that sends noise in pieces of one second until the client disconnects. Noise is hard to
 * compress.
 */
export function speakOn(onPiece: (isWaiting: boolean) => void = () => undefined, rate = 24_000) {
  const random = pseudoRandom(1);
  const samples = Int16Array.from({ length: rate }, () => 20_000 * (random() - 0.5));
  return async (call: Call): Promise<void> => {
    let over = false;
    void call.aborted.then(() => {
      over = true;
    });
    await call.head(rate);
    while (!over) {
      onPiece(true);
      await call.send({ kind: "audio", samples });
      onPiece(false);
    }
  };
}

/** Returns a script that sends a tone of this length, by default 0.1 s, and then an error. */
export function fail({ seconds = 0.1, rate = 24_000 } = {}) {
  return async (call: Call): Promise<void> => {
    await call.head(rate);
    if (seconds > 0) await call.tone(seconds * rate, rate);
    await call.send({ kind: "error", failure: new Failure("model_failed", "The voice broke.") });
    call.close();
  };
}

async function answer(
  model: ScriptedModel,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const call = createCall(JSON.parse(Buffer.concat(pieces).toString()) as Invocation, request, response);
  model.calls.push(call);
  await model.script(call);
}

function createCall(invocation: Invocation, request: IncomingMessage, response: ServerResponse): Call {
  let sent = 0;
  let isHeldUp = false;
  const aborted = new Promise<void>((resolve) => {
    response.once("close", () => {
      if (!response.writableFinished) resolve();
    });
  });
  const send = async (frame: WireFrame) => {
    if (response.destroyed) return;
    const hasCapacity = response.write(encodeFrame(frame));
    if (hasCapacity) return;
    await new Promise<void>((resolve) => {
      isHeldUp = true;
      const go = () => {
        isHeldUp = false;
        response.off("drain", go).off("close", go);
        resolve();
      };
      response.on("drain", go).on("close", go);
    });
  };
  return {
    invocation,
    headers: request.headers,
    aborted,
    get isHeldUp() {
      return isHeldUp;
    },
    send,
    head: (rate) => send({ kind: "head", rate, engine: "tone" }),
    tone: async (count, rate) => {
      if (response.destroyed) return;
      await send({ kind: "audio", samples: sine(count, rate, sent) });
      sent += count;
    },
    end: async (samples) => {
      await send({ kind: "end", samples });
      response.end();
    },
    flushed: () => new Promise((resolve) => response.write("", () => resolve())),
    cut: () => response.destroy(),
    close: () => response.end(),
    refuse: (status, problem, headers) => {
      response.writeHead(status, { "content-type": "application/problem+json", ...headers });
      response.end(JSON.stringify(problem));
    },
  };
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}
