import { WebSocket } from "ws";
import type { WordTimestamp } from "../../server/contract/speech.ts";

/** The sampling rate of the audio in Hz. */
export const agentRate = 24_000;

export interface Agent {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly speaker: string;
}

export interface TurnListener {
  audio(samples: Int16Array): void;
  /** Called with the timestamps of words, in seconds from the start of the turn. */
  words(words: readonly WordTimestamp[]): void;
}

/** A turn of the agent on an open socket. */
export interface AgentTurn {
  write(token: string): void;
  /** Reports to the server that the reply has no more text. */
  finish(): void;
  interrupt(): void;
  /** Resolves at the last event of the turn. */
  readonly ended: Promise<void>;
}

/** A socket on which an agent sends the text of several turns. Each protocol has its own implementation. */
export interface AgentSocket {
  begin(name: string, listener: TurnListener): AgentTurn;
  close(): void;
}

interface TextEvent {
  readonly type: string;
  readonly contextId?: string;
  readonly data?: string;
  readonly message?: string;
  readonly word_timestamps?: {
    readonly words: readonly string[];
    readonly start: readonly number[];
    readonly end: readonly number[];
  };
}

/** Opens a socket of the path `/ws3`. */
export async function openTextSocket({ url, key, model, speaker }: Agent): Promise<AgentSocket> {
  const query = `modelId=${model}&speaker=${speaker}&audioFormat=pcm&samplingRate=${agentRate}&timestampBase=stream`;
  const { socket, send, turns } = await connect(`${url}/ws3?${query}`, key);
  onMessage<TextEvent>(socket, turns, ({ type, contextId = "", data, message, word_timestamps }, turn) => {
    if (type === "chunk") turn.listener.audio(samplesOf(data));
    else if (type === "done") turn.resolve();
    else if (type === "timestamps" && word_timestamps) {
      const { words, start, end } = word_timestamps;
      turn.listener.words(words.map((word, i) => ({ word, start: start[i] ?? 0, end: end[i] ?? 0 })));
    } else turn.reject(new Error(`${contextId}: the server sent ${type} ${message ?? ""}`));
  });
  return {
    close: () => socket.close(),
    begin: (contextId, listener) => ({
      ended: turns.add(contextId, listener),
      write: (text) => send({ text, contextId }),
      finish: () => send({ operation: "flush", contextId }),
      interrupt: () => send({ operation: "clear" }),
    }),
  };
}

interface ContextEvent {
  readonly contextId?: string;
  readonly audio?: string;
  readonly done?: {
    readonly timestamps?: {
      readonly spans?: readonly { readonly text: string; readonly start?: string; readonly end?: string }[];
    };
  };
  readonly ready?: object;
  readonly started?: object;
  readonly cancelled?: object;
  readonly error?: { readonly message?: string };
}

/** Opens a socket of the protocol v1 with JSON messages. */
export async function openContextSocket({ url, key, model, speaker }: Agent): Promise<AgentSocket> {
  const { socket, send, turns } = await connect(`${url}/${model}/ws`, key, "rime.v1.json");
  onMessage<ContextEvent>(socket, turns, ({ audio, done, cancelled, error }, turn) => {
    if (audio !== undefined) turn.listener.audio(samplesOf(audio));
    if (error) turn.reject(new Error(`the server sent an error: ${error.message}`));
    const spans = done?.timestamps?.spans ?? [];
    if (done) turn.listener.words(spans.map(({ text, start, end }) => word(text, start, end)));
    if (done || cancelled) turn.resolve();
  });
  const audioParameters = { audioFormat: "audio/pcm", samplingRate: agentRate };
  const splitStrategy = "SPLIT_STRATEGY_ACCUMULATE_SENTENCE";
  return {
    close: () => socket.close(),
    begin: (contextId, listener) => {
      const ended = turns.add(contextId, listener);
      send({ contextId, start: { speaker, audioParameters, splitStrategy, timestamps: { enable: true } } });
      return {
        ended,
        write: (text) => send({ contextId, text }),
        finish: () => send({ contextId, end: {} }),
        interrupt: () => send({ contextId, cancel: {} }),
      };
    },
  };
}

interface OpenTurn {
  readonly listener: TurnListener;
  resolve(): void;
  reject(error: Error): void;
}

/** The open turns by their context ID. An event of a turn that has ended is an error. */
class Turns {
  readonly #open = new Map<string, OpenTurn>();
  readonly #failed: Error[] = [];

  add(contextId: string, listener: TurnListener): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = (then: () => void) => {
      this.#open.delete(contextId);
      then();
    };
    this.#open.set(contextId, {
      listener,
      resolve: () => over(resolve),
      reject: (error) => over(() => reject(error)),
    });
    const [failed] = this.#failed;
    if (failed) this.failAll(failed);
    return promise;
  }

  find(contextId: string): OpenTurn | undefined {
    return this.#open.get(contextId);
  }

  /** Rejects the open turns and all later turns. */
  failAll(error: Error): void {
    this.#failed.push(error);
    for (const turn of this.#open.values()) turn.reject(error);
  }
}

async function connect(address: string, key: string, subprotocol?: string) {
  const socket = new WebSocket(address.replace(/^http/, "ws"), subprotocol, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  const turns = new Turns();
  socket.on("error", (error) => turns.failAll(error));
  socket.on("close", (code) => turns.failAll(new Error(`the socket was closed with ${code}`)));
  return { socket, turns, send: (message: object) => socket.send(JSON.stringify(message)) };
}

function onMessage<Event extends { readonly contextId?: string }>(
  socket: WebSocket,
  turns: Turns,
  handle: (event: Event, turn: OpenTurn) => void,
): void {
  socket.on("message", (data) => {
    const event = JSON.parse(String(data)) as Event;
    if ("ready" in event) return;
    const turn = turns.find(event.contextId ?? "");
    if (turn) handle(event, turn);
    else
      turns.failAll(
        new Error(`the server sent an event of a turn that has ended: ${String(data).slice(0, 100)}`),
      );
  });
}

function samplesOf(base64 = ""): Int16Array {
  const bytes = new Uint8Array(Buffer.from(base64, "base64"));
  return new Int16Array(bytes.buffer, 0, bytes.length >> 1);
}

function word(text: string, start = "0s", end = "0s"): WordTimestamp {
  return { word: text, start: Number(start.slice(0, -1)), end: Number(end.slice(0, -1)) };
}
