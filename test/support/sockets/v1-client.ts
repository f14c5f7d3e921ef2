import { create, fromBinary, fromJson, type JsonValue, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { EnvelopeEncoding } from "../../../server/api/sockets/v1/envelopes.ts";
import {
  type RequestEnvelope,
  type ResponseEnvelope,
  requestSchema,
  responseSchema,
} from "../../../server/api/sockets/v1/schema.ts";
import { eventually } from "../eventually.ts";
import { type ConnectOptions, connectSocket, type SocketClient } from "./client.ts";

type PayloadCase = NonNullable<ResponseEnvelope["payload"]["case"]>;
type PayloadValue<Case extends PayloadCase> = Extract<ResponseEnvelope["payload"], { case: Case }>["value"];

const terminalCases: readonly string[] = ["done", "cancelled", "error"];

/** A client of the v1 protocol with one of its two encodings. */
export class V1Client {
  readonly client: SocketClient;
  readonly #encoding: EnvelopeEncoding;

  constructor(client: SocketClient, encoding: EnvelopeEncoding) {
    this.client = client;
    this.#encoding = encoding;
  }

  get messages(): ResponseEnvelope[] {
    return this.#encoding === "binary"
      ? this.client.binary.map((frame) => fromBinary(responseSchema, frame))
      : this.client.events.map((event) => fromJson(responseSchema, event as unknown as JsonValue));
  }

  /** @param payload the payload in the JSON form of the protocol */
  send(contextId: string, payload: object): void {
    const json = { contextId, ...payload } as unknown as JsonValue;
    const message: RequestEnvelope = create(requestSchema, fromJson(requestSchema, json));
    this.client.socket.send(
      this.#encoding === "binary" ? toBinary(requestSchema, message) : toJsonString(requestSchema, message),
    );
  }

  /** Returns the names of the events of a context in order. Consecutive audio events count as one. */
  sequence(contextId: string): string[] {
    return this.messages
      .filter((message) => message.contextId === contextId)
      .map(({ payload }) => String(payload.case))
      .filter((name, at, all) => name !== "audio" || all[at - 1] !== "audio");
  }

  audio(contextId: string): Buffer {
    return Buffer.concat(this.#values("audio", contextId));
  }

  last<Case extends PayloadCase>(name: Case, contextId?: string): PayloadValue<Case> | undefined {
    return this.#values(name, contextId).at(-1);
  }

  #values<Case extends PayloadCase>(name: Case, contextId?: string): PayloadValue<Case>[] {
    return this.messages
      .filter((message) => contextId === undefined || message.contextId === contextId)
      .filter(({ payload }) => payload.case === name)
      .map(({ payload }) => payload.value as PayloadValue<Case>);
  }

  /** Waits until this many events of this kind have arrived. */
  async until(name: PayloadCase, contextId?: string, count = 1): Promise<void> {
    await eventually(
      `${count} ${name} events of context ${contextId} arrive`,
      () => this.#values(name, contextId).length >= count,
      {
        seen: () => ({
          closing: this.client.closing,
          cases: this.messages.map(({ payload }) => payload.case),
        }),
      },
    );
  }

  /** Waits until the context has ended for any reason. */
  async ended(contextId: string): Promise<void> {
    const isTerminal = (name: string) => terminalCases.includes(name);
    await eventually(`context ${contextId} has ended`, () => this.sequence(contextId).some(isTerminal), {
      seen: () => this.messages.map(({ payload }) => payload.case),
    });
  }

  closed(): ReturnType<SocketClient["closed"]> {
    return this.client.closed();
  }

  settled(): Promise<void> {
    return this.client.settled();
  }
}

export async function connectV1(
  url: string,
  encoding: EnvelopeEncoding,
  options: ConnectOptions & { readonly path?: string } = {},
): Promise<V1Client> {
  const subprotocol = `rime.v1.${encoding}`;
  return new V1Client(await connectSocket(url, options.path ?? "/ws", { subprotocol, ...options }), encoding);
}
