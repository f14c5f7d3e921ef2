import { create, createFileRegistry, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import {
  type Duration,
  type FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_duration,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

/** A `payload` is a field of the oneof `payload`. An `optional` field has explicit presence. */
type Rule = "optional" | "repeated" | "payload";
type FieldRow = readonly [name: string, number: number, type: string, rule?: Rule];
type Messages = Readonly<Record<string, readonly FieldRow[]>>;

/** The messages of the published schema that this protocol uses. */
const messages: Messages = {
  WebSocketRequest: [
    ["context_id", 1, "string"],
    ["config", 2, "WebSocketConfig", "payload"],
    ["start", 3, "SynthesisRequest", "payload"],
    ["text", 4, "string", "payload"],
    ["end", 5, "WebSocketEnd", "payload"],
    ["cancel", 6, "WebSocketCancel", "payload"],
  ],
  WebSocketConfig: [
    ["authorization", 1, "string", "optional"],
    ["license", 2, "string", "optional"],
    ["defaults", 3, "SynthesisRequest", "optional"],
  ],
  WebSocketEnd: [],
  WebSocketCancel: [],
  SynthesisRequest: [
    ["language", 2, "string", "optional"],
    ["speaker", 3, "string", "optional"],
    ["text", 4, "string"],
    ["audio_parameters", 5, "AudioParameters", "optional"],
    ["split_strategy", 6, "SplitStrategy", "optional"],
    ["coda_parameters", 8, "CodaParameters", "optional"],
    ["mist_parameters", 9, "MistParameters", "optional"],
    ["timestamps", 10, "TimestampOptions", "optional"],
    ["custom_lexicon", 11, "PronunciationEntry", "repeated"],
  ],
  AudioParameters: [
    ["audio_format", 1, "string", "optional"],
    ["sampling_rate", 2, "int32", "optional"],
    ["time_scale_factor", 3, "float", "optional"],
  ],
  CodaParameters: [["text_lookahead_tokens", 8, "int32", "optional"]],
  MistParameters: [
    ["pause_between_brackets", 1, "bool", "optional"],
    ["phonemize_between_brackets", 2, "bool", "optional"],
    ["inline_time_scale_factors", 3, "float", "repeated"],
    ["save_oovs", 4, "bool", "optional"],
  ],
  TimestampOptions: [["enable", 1, "bool"]],
  PronunciationEntry: [
    ["spelling", 1, "string"],
    ["pronunciation", 2, "string"],
  ],
  WebSocketResponse: [
    ["context_id", 1, "string"],
    ["ready", 2, "WebSocketReady", "payload"],
    ["started", 3, "WebSocketStarted", "payload"],
    ["audio", 4, "bytes", "payload"],
    ["done", 5, "WebSocketDone", "payload"],
    ["cancelled", 6, "WebSocketCancelled", "payload"],
    ["error", 7, "WebSocketError", "payload"],
  ],
  WebSocketReady: [
    ["protocol", 1, "uint32"],
    ["languages", 2, "string", "repeated"],
    ["default_language", 3, "string", "optional"],
  ],
  WebSocketStarted: [["request_id", 1, "string"]],
  WebSocketDone: [["timestamps", 1, "Timestamps", "optional"]],
  WebSocketCancelled: [],
  WebSocketError: [
    ["kind", 1, "string"],
    ["message", 2, "string"],
    ["request_id", 3, "string", "optional"],
  ],
  Timestamps: [
    ["status", 1, ".google.rpc.Status"],
    ["spans", 2, "SpanTimestamp", "repeated"],
  ],
  SpanTimestamp: [
    ["text", 1, "string"],
    ["start", 2, ".google.protobuf.Duration"],
    ["end", 3, ".google.protobuf.Duration"],
  ],
};

/** The part of `google.rpc.Status` that this protocol uses. */
const statusMessages: Messages = {
  Status: [
    ["code", 1, "int32"],
    ["message", 2, "string"],
  ],
};

/** The names of `SplitStrategy`, indexed by number. */
const splitStrategyNames = ["UNSPECIFIED", "SENTENCE", "NONE", "ACCUMULATE_SENTENCE"] as const;

const scalars: ReadonlyMap<string, Type> = new Map([
  ["string", Type.STRING],
  ["bool", Type.BOOL],
  ["int32", Type.INT32],
  ["uint32", Type.UINT32],
  ["float", Type.FLOAT],
  ["bytes", Type.BYTES],
]);
const enumName = "SplitStrategy";
const protocolPackage = "rime";

function describeFile(
  name: string,
  packageName: string,
  all: Messages,
  more: Pick<MessageInitShape<typeof FileDescriptorProtoSchema>, "dependency" | "enumType"> = {},
): FileDescriptorProto {
  return create(FileDescriptorProtoSchema, {
    name,
    package: packageName,
    syntax: "proto3",
    ...more,
    messageType: Object.entries(all).map(([message, rows]) => ({
      name: message,
      field: rows.map((row) => describeField(row, rows, packageName)),
      oneofDecl: oneofsOf(rows).map((oneof) => ({ name: oneof })),
    })),
  });
}

/**
 * Returns the oneofs of a message. In proto3, each optional field has its own oneof, which follows the other
 * oneofs.
 */
function oneofsOf(rows: readonly FieldRow[]): string[] {
  const optional = rows.filter(([, , , rule]) => rule === "optional").map(([name]) => `_${name}`);
  return rows.some(([, , , rule]) => rule === "payload") ? ["payload", ...optional] : optional;
}

function describeField(
  [name, number, type, rule]: FieldRow,
  rows: readonly FieldRow[],
  packageName: string,
): MessageInitShape<typeof FieldDescriptorProtoSchema> {
  const scalar = scalars.get(type);
  const isMember = rule === "payload" || rule === "optional";
  return {
    name,
    number,
    jsonName: name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
    label: rule === "repeated" ? Label.REPEATED : Label.OPTIONAL,
    type: scalar ?? (type === enumName ? Type.ENUM : Type.MESSAGE),
    ...(scalar === undefined && { typeName: type.startsWith(".") ? type : `.${packageName}.${type}` }),
    ...(isMember && { oneofIndex: oneofsOf(rows).indexOf(rule === "payload" ? rule : `_${name}`) }),
    ...(rule === "optional" && { proto3Optional: true }),
  };
}

function describeProtocol(): FileDescriptorProto {
  const { name: duration } = file_google_protobuf_duration.proto;
  const value = splitStrategyNames.map((name, number) => ({ name: `SPLIT_STRATEGY_${name}`, number }));
  return describeFile("text_to_speech.proto", protocolPackage, messages, {
    dependency: [duration, statusFile.name],
    enumType: [{ name: enumName, value }],
  });
}

const statusFile = describeFile("google/rpc/status.proto", "google.rpc", statusMessages);
const registry = createFileRegistry(
  create(FileDescriptorSetSchema, {
    file: [file_google_protobuf_duration.proto, statusFile, describeProtocol()],
  }),
);

function schemaOf<Shape extends Message>(typeName: Shape["$typeName"]): GenMessage<Shape> {
  const message = registry.getMessage(typeName);
  if (!message) throw new Error(`the schema has no message ${typeName}`);
  return message as unknown as GenMessage<Shape>;
}

/** The schema of a client's messages. */
export const requestSchema = schemaOf<RequestEnvelope>("rime.WebSocketRequest");
/** The schema of the server's messages. */
export const responseSchema = schemaOf<ResponseEnvelope>("rime.WebSocketResponse");

export type RequestEnvelope = Message<"rime.WebSocketRequest"> & {
  contextId: string;
  payload:
    | { case: "config"; value: ConnectionConfig }
    | { case: "start"; value: SynthesisParameters }
    | { case: "text"; value: string }
    | { case: "end"; value: Message<"rime.WebSocketEnd"> }
    | { case: "cancel"; value: Message<"rime.WebSocketCancel"> }
    | { case: undefined; value?: undefined };
};

export type ConnectionConfig = Message<"rime.WebSocketConfig"> & {
  authorization?: string;
  license?: string;
  defaults?: SynthesisParameters;
};

/** The parameters of one context. */
export type SynthesisParameters = Message<"rime.SynthesisRequest"> & {
  language?: string;
  speaker?: string;
  text: string;
  audioParameters?: AudioParameters;
  splitStrategy?: number;
  codaParameters?: Message<"rime.CodaParameters"> & { textLookaheadTokens?: number };
  mistParameters?: MistParameters;
  timestamps?: Message<"rime.TimestampOptions"> & { enable: boolean };
  customLexicon: PronunciationEntry[];
};

type AudioParameters = Message<"rime.AudioParameters"> & {
  audioFormat?: string;
  samplingRate?: number;
  timeScaleFactor?: number;
};

type MistParameters = Message<"rime.MistParameters"> & {
  pauseBetweenBrackets?: boolean;
  phonemizeBetweenBrackets?: boolean;
  inlineTimeScaleFactors: number[];
  saveOovs?: boolean;
};

type PronunciationEntry = Message<"rime.PronunciationEntry"> & { spelling: string; pronunciation: string };

export type ResponseEnvelope = Message<"rime.WebSocketResponse"> & {
  contextId: string;
  payload:
    | { case: "ready"; value: ReadyEvent }
    | { case: "started"; value: Message<"rime.WebSocketStarted"> & { requestId: string } }
    | { case: "audio"; value: Uint8Array }
    | { case: "done"; value: Message<"rime.WebSocketDone"> & { timestamps?: TimestampsReport } }
    | { case: "cancelled"; value: Message<"rime.WebSocketCancelled"> }
    | { case: "error"; value: ErrorEvent }
    | { case: undefined; value?: undefined };
};

type ReadyEvent = Message<"rime.WebSocketReady"> & {
  protocol: number;
  languages: string[];
  defaultLanguage?: string;
};

type ErrorEvent = Message<"rime.WebSocketError"> & { kind: string; message: string; requestId?: string };

type TimestampsReport = Message<"rime.Timestamps"> & {
  status?: Message<"google.rpc.Status"> & { code: number; message: string };
  spans: (Message<"rime.SpanTimestamp"> & { text: string; start?: Duration; end?: Duration })[];
};

/** The ways to divide the text of a context before its synthesis. */
export type SplitStrategy = "sentence" | "none" | "accumulateSentence";

/** Returns the strategy of a context. The default, which also replaces an unknown strategy, is `sentence`. */
export function splitStrategyOf({ splitStrategy }: SynthesisParameters): SplitStrategy {
  switch (splitStrategyNames[splitStrategy ?? 0]) {
    case "NONE":
      return "none";
    case "ACCUMULATE_SENTENCE":
      return "accumulateSentence";
    default:
      return "sentence";
  }
}
