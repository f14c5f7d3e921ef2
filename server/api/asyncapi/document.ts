/** Describes the WebSockets as an AsyncAPI 3 document. The messages of v1 come from the protobuf schema. */
import { requestSchema, responseSchema } from "../sockets/v1/schema.ts";
import {
  audioEvent,
  flaggedDone,
  jsonEventMessages,
  jsonRequests,
  query,
  textRequest,
} from "./older-protocols.ts";
import { ProtobufSchemas } from "./protobuf-schemas.ts";

type Messages = Readonly<Record<string, object>>;

interface Protocol {
  readonly address: string;
  readonly title: string;
  readonly description: string;
  readonly query?: object;
  readonly subprotocols?: readonly string[];
  readonly requests: Messages;
  readonly events: Messages;
}

const requestDescriptions = {
  "WebSocketRequest.contextId": "At most 128 bytes. Empty or absent: `default`.",
  "WebSocketConfig.authorization": "The API key as `Bearer <key>`, if the upgrade had no key.",
  "WebSocketConfig.license": "Accepted, but has no effect.",
  "WebSocketConfig.defaults": "Parameters for each `start` that does not have them.",
  SynthesisRequest: "The parameters of one context.",
  "SynthesisRequest.language": "The language, which must match the voice.",
  "SynthesisRequest.speaker": "A voice, or an alias of a voice. Required here or in `config.defaults`.",
  "SynthesisRequest.text":
    "The whole text. If it is empty or absent, the client sends the text in `text` messages.",
  "SynthesisRequest.splitStrategy":
    "When text is synthesized. `SPLIT_STRATEGY_SENTENCE` (default): each text immediately, as a sentence. `SPLIT_STRATEGY_ACCUMULATE_SENTENCE`: each sentence when it is complete. `SPLIT_STRATEGY_NONE`: all text together, after `end`.",
  "SynthesisRequest.codaParameters": "Accepted, but has no effect.",
  "SynthesisRequest.customLexicon": "Pronunciations of up to 500 words.",
  "AudioParameters.audioFormat":
    "`audio/pcm`, `audio/l16`, `audio/pcmu`, `audio/wav` (default), `audio/mpeg`, `audio/ogg;codecs=opus` or `audio/webm;codecs=opus`.",
  "AudioParameters.samplingRate": "Hz. Default: 24000.",
  "AudioParameters.timeScaleFactor": "0.4 to 2.5. Below 1 is faster.",
  "PronunciationEntry.spelling": "The word, in upper or lower case.",
  "PronunciationEntry.pronunciation": "The sounds of the word in X-SAMPA.",
  "TimestampOptions.enable": "Whether `done` contains word timestamps.",
};

const responseDescriptions = {
  "WebSocketResponse.contextId": "The context. Absent if the message concerns the connection.",
  "WebSocketStarted.requestId": "The request ID in the logs.",
  "WebSocketError.kind": "The kind of the error. Programs can rely on it.",
  "WebSocketError.message": "A description of the error for users.",
  "Timestamps.status": "`code` is 0 if the message contains word timestamps.",
  SpanTimestamp:
    "The timestamps of one word, relative to the start of the context's audio at normal speed (without `timeScaleFactor`).",
};

const summaries: Readonly<Record<string, string>> = {
  config: "The API key and the defaults of the connection. Sent at most once, before the first `start`.",
  start: "Opens a context.",
  text: "Adds text to an open context.",
  end: "Marks the text of the context as complete.",
  cancel: "Stops the context immediately.",
  ready: "The first message of the server.",
  started: "The server has accepted the context.",
  audio: "Audio in whole samples.",
  done: "The last message of a context that was synthesized completely.",
  cancelled: "The last message of a cancelled context. Also the response to `cancel` with an unknown ID.",
  error: "The last message of a context that failed. Without `contextId`, the error concerns the connection.",
};

const requests = new ProtobufSchemas({ descriptions: requestDescriptions, ignoresUnknown: true });
const responses = new ProtobufSchemas({ descriptions: responseDescriptions, ignoresUnknown: false });

function envelopes(payloads: ReadonlyMap<string, object>): Messages {
  return Object.fromEntries(
    [...payloads].map(([name, payload]) => [name, { summary: summaries[name], payload }]),
  );
}

const protocols: Readonly<Record<string, Protocol>> = {
  contexts: {
    address: "/ws",
    title: "v1: several contexts on one socket",
    description:
      "Messages in the JSON mapping of proto3. With the subprotocol `rime.v1.binary`, the server sends the same messages in binary protobuf. The path segment before `/ws` may name a model, as in `/coda/ws`.",
    subprotocols: ["rime.v1.json", "rime.v1.binary"],
    requests: envelopes(requests.payloadsOf(requestSchema)),
    events: envelopes(responses.payloadsOf(responseSchema)),
  },
  json: {
    address: "/ws3",
    title: "JSON",
    description: "One voice for each socket. Turns are synthesized one after the other.",
    query,
    requests: jsonRequests,
    events: jsonEventMessages,
  },
  jsonWithFlag: {
    address: "/ws2",
    title: "JSON, with `done: true`",
    description: "Like `/ws3`, for clients that read `done.done`.",
    query,
    requests: jsonRequests,
    events: { ...jsonEventMessages, done: flaggedDone },
  },
  text: {
    address: "/ws",
    title: "Text in, audio out",
    description:
      "Applies if the client offers no subprotocol of v1, and the query has `speaker`, `modelId` or `audioFormat`.",
    query,
    requests: { text: textRequest },
    events: { audio: audioEvent },
  },
};

function channelOf(protocol: Protocol): object {
  const { address, title, description, query: parameters, subprotocols } = protocol;
  const authorization = { type: "string", description: "`Bearer <key>` or `Api-Key <key>`." };
  const offer = subprotocols && { "Sec-WebSocket-Protocol": { type: "string", enum: subprotocols } };
  const headers = { type: "object", properties: { Authorization: authorization, ...offer } };
  const binding = { method: "GET", ...(parameters && { query: parameters }), headers };
  return {
    address,
    title,
    description,
    messages: { ...named(protocol, "requests"), ...named(protocol, "events") },
    bindings: { ws: binding },
  };
}

/** Adds a prefix to the name of each message, because both directions may have a message of the same name. */
function named(protocol: Protocol, direction: "requests" | "events"): Messages {
  const entries = Object.entries(protocol[direction]).map(([name, message]) => [
    messageName(direction, name),
    { name, contentType: "application/json", ...message },
  ]);
  return Object.fromEntries(entries);
}

function messageName(direction: "requests" | "events", name: string): string {
  return direction === "requests" ? `client.${name}` : `server.${name}`;
}

function operationsOf(channel: string, protocol: Protocol): Messages {
  const operation = (action: string, direction: "requests" | "events") => ({
    action,
    channel: { $ref: `#/channels/${channel}` },
    messages: Object.keys(protocol[direction]).map((name) => ({
      $ref: `#/channels/${channel}/messages/${messageName(direction, name)}`,
    })),
  });
  return {
    [`${channel}.receive`]: operation("receive", "requests"),
    [`${channel}.send`]: operation("send", "events"),
  };
}

/**
 * The version of the API, which differs from the version of the program. An addition to the API increments
 * the second number.
 */
const version = "1.0.0";

/** Creates the document as a new object of plain JSON. */
export function asyncapiDocument(): object {
  const entries = Object.entries(protocols);
  const document = {
    asyncapi: "3.0.0",
    info: {
      title: "svc-tts WebSockets",
      version,
      description:
        "Text to speech for text that arrives in pieces. The paths are available under any prefix, for example `/v1/ws3`. If the server rejects an upgrade, the response is plain text.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    servers: {
      api: {
        host: "{host}",
        protocol: "wss",
        variables: { host: { default: "localhost:8000", description: "Host and port of the API." } },
        security: [{ $ref: "#/components/securitySchemes/key" }],
      },
    },
    channels: Object.fromEntries(entries.map(([name, protocol]) => [name, channelOf(protocol)])),
    operations: Object.assign({}, ...entries.map(([name, protocol]) => operationsOf(name, protocol))),
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "An API key with the scope `tts:write`." },
      },
      schemas: { ...requests.components, ...responses.components },
    },
  };
  // The conversion removes internal properties of the schema library.
  return JSON.parse(JSON.stringify(document));
}
