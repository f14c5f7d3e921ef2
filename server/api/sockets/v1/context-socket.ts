import type { RawData, WebSocket } from "ws";
import { Failure } from "../../../contract/errors.ts";
import type { ApiKey } from "../../../store/keys/key.ts";
import type { KeyStore } from "../../../store/keys/key-store.ts";
import { authenticate } from "../../access/authenticate.ts";
import type { LicenseGate } from "../../access/license-gate.ts";
import { countSynthesis } from "../../access/rate-limit.ts";
import type { OpenSocket } from "../../lifecycle/open-sockets.ts";
import { toFailure } from "../../respond/problems.ts";
import type { Prober } from "../../upstream/prober.ts";
import { type RefusedCredential, type SocketIdentity, socketIdentity } from "../socket-identity.ts";
import type { SocketRules } from "../socket-settings.ts";
import type { SocketCaller, SocketSynthesisServices } from "../socket-synthesis.ts";
import { sendFrame } from "../socket-writer.ts";
import { mergeDefaults, readContextSettings } from "./context-settings.ts";
import { decodeRequest, type EnvelopeEncoding, encodeResponse, type ResponsePayload } from "./envelopes.ts";
import { errorKindOf } from "./error-kinds.ts";
import type { ConnectionConfig, RequestEnvelope, SynthesisParameters } from "./schema.ts";
import { SpeechContext } from "./speech-context.ts";

const closings = {
  draining: [1001, "going away"],
  undecodable: [1007, "400: invalid message"],
  unauthenticated: [1008, "401: unauthenticated"],
  overloaded: [1013, "503: try again later"],
} as const;

/** The highest number of concurrent contexts of one socket. */
const mostContexts = 64;
const longestContextIdBytes = 128;
const defaultContextId = "default";
/** The context ID of messages about the connection. */
const connectionId = "";
const protocolVersion = 1;
/** The time limit for a client to send its API key, if the upgrade had no key. */
const authenticationMs = 10_000;
/**
 * The longest wait until a model is reachable. Clients wait ten seconds for `ready`, and the error must
 * arrive within this time.
 */
const readinessMs = 8_000;
const readinessPollMs = 100;
/** The sampling rate in Hz that determines the limit of waiting bytes for messages without audio. */
const usualRate = 24_000;

export interface ContextSocketServices extends SocketSynthesisServices {
  readonly license: Pick<LicenseGate, "admit">;
  readonly prober: Pick<Prober, "configured" | "isReachable">;
  readonly keys: KeyStore;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

export interface ContextSocketOptions {
  readonly parts: ContextSocketServices;
  readonly socket: WebSocket;
  readonly encoding: EnvelopeEncoding;
  /** The model that the connection names. */
  readonly modelId: string | undefined;
  /** The client and its connection. If the upgrade had no API key, a `config` message contains the key. */
  readonly caller: SocketCaller;
  /**
   * Returns the current rules. The socket calls this function for each context, because the available voices
   * change.
   */
  readonly rules: () => SocketRules;
  /**
   * Counts the socket for the API key of a `config` message.
   * @throws Failure `too_many_sockets`.
   */
  readonly enter: (apiKey: ApiKey) => void;
}

interface Frame {
  readonly data: RawData;
  readonly isBinary: boolean;
}

/**
 * Serves a socket of v1, on which several contexts are synthesized at the same time. Each context ends with
 * exactly one event.
 */
export class ContextSocket implements OpenSocket {
  readonly #options: ContextSocketOptions;
  readonly #contexts = new Map<string, SpeechContext>();
  #identity: SocketIdentity | undefined;
  #isConfigured = false;
  #defaults: SynthesisParameters | undefined;
  #starts = 0;
  /**
   * The frames that wait until a model is reachable, or the API key is verified. The value is undefined while
   * frames are handled immediately.
   */
  #held: Frame[] | undefined;
  #cancelWait: (() => void) | undefined;
  /** The failure with which a later authentication rejected the client. */
  #refusal: RefusedCredential | undefined;
  #isDraining = false;
  #isClosed = false;

  constructor(options: ContextSocketOptions) {
    const { parts, caller } = options;
    this.#options = options;
    this.#identity = caller.identity;
    this.#hold();
    this.#awaitReadiness(parts.clock.monotonicMs() + readinessMs);
  }

  get requestId(): string {
    return this.#options.caller.requestId;
  }

  countContexts(): number {
    return this.#contexts.size;
  }

  receive(data: RawData, isBinary: boolean): void {
    this.#receive({ data, isBinary });
  }

  drain(): void {
    this.#isDraining = true;
    this.#closeDrained();
  }

  #awaitReadiness(endMs: number): void {
    const { clock } = this.#options.parts;
    if (this.#isClosed) return;
    if (this.#isReady()) {
      this.#send(connectionId, { case: "ready", value: this.#readyEvent() });
      if (!this.#identity) this.#awaitKey();
      this.#release();
    } else if (clock.monotonicMs() >= endMs) {
      this.#report(
        connectionId,
        new Failure("model_unreachable", "No model is reachable; connect again in a moment."),
      );
      this.#close("overloaded");
    } else {
      this.#wait(readinessPollMs, () => this.#awaitReadiness(endMs));
    }
  }

  #awaitKey(): void {
    const refuse = () =>
      this.#refuse(
        new Failure(
          "unauthorized",
          "No API key was received in time; send your API key in a config message.",
        ),
      );
    this.#wait(authenticationMs, refuse);
  }

  /** Starts the timer of the socket, which has at most one timer at a time. */
  #wait(durationMs: number, then: () => void): void {
    this.#cancelWait = this.#options.parts.clock.after(durationMs, then, { isBackground: true });
  }

  #isReady(): boolean {
    const { prober } = this.#options.parts;
    return prober.configured().some((model) => prober.isReachable(model));
  }

  #readyEvent() {
    const languages = [...new Set(this.#options.rules().voices.map(({ language }) => language))];
    const usual = languages.includes("eng") ? "eng" : languages[0];
    const defaultLanguage = usual === undefined ? {} : { defaultLanguage: usual };
    return { protocol: protocolVersion, languages, ...defaultLanguage };
  }

  #hold(): void {
    this.#held = [];
    this.#options.socket.pause();
  }

  #release(): void {
    const frames = this.#held ?? [];
    this.#held = undefined;
    this.#options.socket.resume();
    for (const frame of frames) this.#receive(frame);
  }

  #receive(frame: Frame): void {
    if (this.#isClosed) return;
    if (this.#held) {
      this.#held.push(frame);
      return;
    }
    const envelope = decode(frame);
    if (envelope) this.#handle(envelope);
    else {
      this.#report(
        connectionId,
        invalid("The frame is not a valid message; send JSON in text frames, or protobuf in binary frames."),
      );
      this.#close("undecodable");
    }
  }

  #handle({ contextId: given, payload }: RequestEnvelope): void {
    const contextId = given === "" ? defaultContextId : given;
    if (payload.case === "config") void this.#configure(payload.value);
    else if (!this.#identity)
      this.#refuse(
        new Failure(
          "unauthorized",
          "The connection is not authenticated; send your API key in a config message first.",
        ),
      );
    else if (Buffer.byteLength(contextId) > longestContextIdBytes) {
      this.#report(connectionId, invalid(`contextId must have at most ${longestContextIdBytes} bytes.`));
    } else if (payload.case === "start") this.#start(contextId, payload.value);
    else if (payload.case === "text") this.#text(contextId, payload.value);
    else if (payload.case === "end") this.#contexts.get(contextId)?.end();
    else if (payload.case === "cancel") this.#cancel(contextId);
    else
      this.#report(
        connectionId,
        invalid("The message has no known payload; send config, start, text, end or cancel."),
      );
  }

  async #configure({ authorization, license, defaults }: ConnectionConfig): Promise<void> {
    const problem = this.#problemOfConfig(authorization ?? license);
    if (problem !== undefined) {
      this.#report(connectionId, invalid(problem));
      return;
    }
    this.#isConfigured = true;
    this.#defaults = defaults;
    if (this.#identity) return;
    this.#hold();
    try {
      await this.#authenticate(authorization);
      this.#release();
    } catch (error) {
      this.#refuse(toFailure(error));
    }
  }

  #problemOfConfig(credential: string | undefined): string | undefined {
    if (this.#isConfigured || this.#starts > 0)
      return "config must be sent at most once, before the first start.";
    const isSecond = this.#identity !== undefined && credential !== undefined;
    return isSecond ? "The upgrade already had an API key; leave it out of config." : undefined;
  }

  async #authenticate(authorization: string | undefined): Promise<void> {
    const { parts, enter } = this.#options;
    const header = authorization?.replace(/^Api-Key /i, "Bearer ");
    const again = () => authenticate({ store: parts.keys, scope: "tts:write", now: parts.now }, header);
    const apiKey = await again();
    await countSynthesis(parts.quotas, apiKey);
    if (this.#isClosed) return;
    enter(apiKey);
    this.#identity = socketIdentity(apiKey, again, ({ message }) => message);
    this.#cancelWait?.();
  }

  #start(contextId: string, given: SynthesisParameters): void {
    this.#starts += 1;
    if (this.#contexts.has(contextId)) {
      this.#report(
        connectionId,
        invalid("A context with this ID is already open; wait for its end, or use another ID."),
      );
      return;
    }
    const requestId = `${this.#options.caller.requestId}.${this.#starts}`;
    try {
      const context = this.#open(contextId, requestId, mergeDefaults(this.#defaults, given));
      this.#contexts.set(contextId, context);
      this.#send(contextId, { case: "started", value: { requestId } });
      context.begin();
    } catch (error) {
      this.#report(contextId, toFailure(error), requestId);
    }
  }

  /** Creates a context. @throws Failure if the server rejects the context. */
  #open(contextId: string, requestId: string, start: SynthesisParameters): SpeechContext {
    const { parts, modelId, rules, caller, socket } = this.#options;
    if (this.#isDraining) throw new Failure("draining", "This server is shutting down; connect again.");
    if (this.#contexts.size >= mostContexts) {
      // Status 429 has the kind `resource_exhausted` (specification of the WebSockets, section 7.3).
      throw new Failure(
        "rate_limited",
        `The socket already has ${mostContexts} open contexts; wait until one ends.`,
      );
    }
    const settings = readContextSettings(start, modelId, rules());
    const { speech } = settings.socket;
    parts.license.admit(speech.invocation.modelId);
    return new SpeechContext({
      parts,
      settings,
      caller: caller.forContext(requestId, this.#identity),
      send: (payload) => sendFrame(socket, this.#encode(contextId, payload), speech.rate),
      onEnd: (last) => this.#finish(contextId, last),
      onRest: () => this.#closeRefused(),
      onRefused: (failure) => {
        this.#refusal = failure;
      },
    });
  }

  /**
   * Handles text. An error with a context ID would end this context, so an error about an open context has no
   * context ID.
   */
  #text(contextId: string, text: string): void {
    const context = this.#contexts.get(contextId);
    if (context?.takesText) context.text(text);
    else
      this.#report(
        context ? connectionId : contextId,
        invalid("The context does not exist or accepts no more text; send start first."),
      );
  }

  #cancel(contextId: string): void {
    this.#contexts.get(contextId)?.stop();
    this.#finish(contextId, { case: "cancelled", value: {} });
  }

  #finish(contextId: string, last: ResponsePayload): void {
    this.#contexts.delete(contextId);
    this.#send(contextId, last);
    this.#closeRefused();
    this.#closeDrained();
  }

  #report(contextId: string, failure: Failure, requestId?: string): void {
    const value = {
      kind: errorKindOf(failure),
      message: failure.message,
      ...(requestId !== undefined && { requestId }),
    };
    this.#send(contextId, { case: "error", value });
  }

  #send(contextId: string, payload: ResponsePayload): void {
    void sendFrame(this.#options.socket, this.#encode(contextId, payload), usualRate);
  }

  #encode(contextId: string, payload: ResponsePayload): string | Uint8Array {
    return encodeResponse(this.#options.encoding, contextId, payload);
  }

  /**
   * Closes a connection whose credential was rejected, as soon as no synthesis runs. Running syntheses may
   * finish.
   */
  #closeRefused(): void {
    if (!this.#refusal) return;
    const isSpeaking = [...this.#contexts.values()].some((context) => context.isSpeaking);
    if (!isSpeaking) this.#refuse(this.#refusal);
  }

  /** Closes a connection whose client is not authenticated. */
  #refuse(failure: Failure): void {
    if (this.#isClosed) return;
    this.#report(connectionId, failure);
    this.#close(failure.status === 401 || failure.status === 403 ? "unauthenticated" : "overloaded");
  }

  #closeDrained(): void {
    if (this.#isDraining && !this.#isClosed && this.#contexts.size === 0) this.#close("draining");
  }

  #close(reason: keyof typeof closings): void {
    this.end();
    this.#options.socket.resume(); // The server must read the client's close frame.
    const [code, text] = closings[reason];
    this.#options.socket.close(code, text);
  }

  /** Stops all work of the socket, also after the client has disconnected. */
  end(): void {
    this.#isClosed = true;
    this.#cancelWait?.();
    for (const context of this.#contexts.values()) context.stop();
    this.#contexts.clear();
  }
}

function invalid(problem: string): Failure {
  return new Failure("invalid_request", problem);
}

/** Decodes a frame. The result is undefined if the frame is not a message of the protocol. */
function decode({ data, isBinary }: Frame): RequestEnvelope | undefined {
  try {
    return decodeRequest(data as Buffer, isBinary);
  } catch {
    return undefined;
  }
}
