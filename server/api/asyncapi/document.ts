/** The WebSockets as an AsyncAPI 3 document, for `docs/asyncapi.json`. Messages of v1 come from its protobuf schema. */
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

/** One protocol of the sockets. */
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
  "WebSocketConfig.authorization": "The API key, as `Bearer <key>`, where the upgrade had none.",
  "WebSocketConfig.license": "Accepted, and without effect.",
  "WebSocketConfig.defaults": "Parameters for each `start` that does not have them.",
  SynthesisRequest: "How one context is spoken.",
  "SynthesisRequest.language": "Must match the voice.",
  "SynthesisRequest.speaker": "A voice, or an alias of one. Required here or in `config.defaults`.",
  "SynthesisRequest.text": "The whole text. Empty or absent: text follows in messages of its own.",
  "SynthesisRequest.splitStrategy":
    "Whether each text is a sentence, comes in pieces, or is spoken together.",
  "SynthesisRequest.codaParameters": "Accepted, and without effect.",
  "SynthesisRequest.customLexicon": "Pronunciations of up to 500 words.",
  "AudioParameters.audioFormat":
    "`audio/pcm`, `audio/l16`, `audio/pcmu`, `audio/wav` (default), `audio/mpeg`, `audio/ogg;codecs=opus` or `audio/webm;codecs=opus`.",
  "AudioParameters.samplingRate": "Hz; 24000 unless given.",
  "AudioParameters.timeScaleFactor": "0.4 to 2.5; below 1 is faster.",
  "PronunciationEntry.spelling": "The word, in any case.",
  "PronunciationEntry.pronunciation": "Its sounds in X-SAMPA.",
  "TimestampOptions.enable": "Word times in `done`.",
};

const responseDescriptions = {
  "WebSocketResponse.contextId": "The context. Absent where the message concerns the connection.",
  "WebSocketStarted.requestId": "The id in the logs.",
  "WebSocketError.kind": "The cause, for programs.",
  "WebSocketError.message": "The cause, for people.",
  "Timestamps.status": "`code` is 0 where there are word times.",
  SpanTimestamp: "One word. Times count from the start of the context's audio, before `timeScaleFactor`.",
};

const summaries: Readonly<Record<string, string>> = {
  config: "The API key and defaults of the connection, once, before the first `start`.",
  start: "Opens a context.",
  text: "Adds text to an open context.",
  end: "The text of the context is complete.",
  cancel: "Stops the context at once.",
  ready: "The first message of the server.",
  started: "The context is accepted.",
  audio: "Audio in whole samples.",
  done: "The last message of a context that was spoken.",
  cancelled: "The last message of a context that was cancelled, also for an unknown id.",
  error: "The last message of the context that it names. Without a context, it concerns the connection.",
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
      "The messages in the JSON of proto3. With the subprotocol `rime.v1.binary` the server writes the same messages in protobuf. The segment of the path before `/ws` may name a model, as in `/coda/ws`.",
    subprotocols: ["rime.v1.json", "rime.v1.binary"],
    requests: envelopes(requests.payloadsOf(requestSchema)),
    events: envelopes(responses.payloadsOf(responseSchema)),
  },
  json: {
    address: "/ws3",
    title: "JSON",
    description: "One voice for each socket, and one turn after the other.",
    query,
    requests: jsonRequests,
    events: jsonEventMessages,
  },
  jsonWithFlag: {
    address: "/ws2",
    title: "JSON, with `done: true`",
    description: "As `/ws3`, for clients that read `done.done`.",
    query,
    requests: jsonRequests,
    events: { ...jsonEventMessages, done: flaggedDone },
  },
  text: {
    address: "/ws",
    title: "Text in, audio out",
    description:
      "Served without a subprotocol of v1 where the query has `speaker`, `modelId` or `audioFormat`.",
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

/** Both directions have a message `text` or `audio` in some protocol: a prefix keeps them apart. */
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

/** Version of the API, not of the program: the path contains 1, and additions increment the second number. */
const version = "1.0.0";

/** @returns a new value of plain JSON. */
export function asyncapiDocument(): object {
  const entries = Object.entries(protocols);
  const document = {
    asyncapi: "3.0.0",
    info: {
      title: "svc-tts WebSockets",
      version,
      description:
        "Text to speech while the text is written. The paths are served under any prefix, for example `/v1/ws3`. A refused upgrade is an HTTP response in plain text.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    servers: {
      api: {
        host: "{host}",
        protocol: "wss",
        variables: { host: { default: "localhost:8000", description: "Where the API is published." } },
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
  return JSON.parse(JSON.stringify(document)); // Removes the schema library's own properties.
}
