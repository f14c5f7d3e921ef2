/**
 * Describes the messages and parameters of `/ws3`, `/ws2` and `/ws` without a subprotocol, as JSON Schemas.
 */
import { modelIds } from "../../../config/contract/models.ts";
import { fields } from "../request/fields.ts";
import { clientOperations } from "../sockets/messages.ts";
import { segmentModes } from "../sockets/segmentation.ts";
import { socketFormats } from "../sockets/socket-settings.ts";

const contextId = {
  type: ["string", "null"],
  description: "The context of the turn. `null` if the texts of the turn name no context.",
};
const seconds = { type: "array", items: { type: "number", minimum: 0 } };

const closed = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

/** Describes the messages of a client on `/ws2` and `/ws3`. The server ignores unknown fields. */
export const jsonRequests = {
  text: {
    summary: "Adds text to the turn. The context ID also applies to later texts without a context ID.",
    payload: {
      type: "object",
      properties: {
        text: { type: "string" },
        contextId,
        phonemizeBetweenBrackets: fields.phonemizeBetweenBrackets,
        inlineSpeedAlpha: fields.inlineSpeedAlpha,
      },
      required: ["text"],
    },
  },
  operation: {
    summary:
      "`flush` synthesizes all text and ends the turn. `clear` stops the synthesis and discards all text. `eos` synthesizes all text and closes the socket.",
    payload: {
      type: "object",
      properties: { operation: { type: "string", enum: [...clientOperations] }, contextId },
      required: ["operation"],
    },
  },
};

/** Describes the events of `/ws3`. */
export const jsonEventMessages = {
  chunk: {
    summary: "Audio in whole samples.",
    payload: closed({
      type: { const: "chunk" },
      data: { type: "string", contentEncoding: "base64" },
      contextId,
    }),
  },
  timestamps: {
    summary: "Word timestamps in seconds from the start of a synthesis. Sent once after each synthesis.",
    payload: closed({
      type: { const: "timestamps" },
      word_timestamps: closed({
        words: { type: "array", items: { type: "string" } },
        start: seconds,
        end: seconds,
      }),
      contextId,
    }),
  },
  done: { summary: "The turn has ended.", payload: closed({ type: { const: "done" }, contextId }) },
  error: {
    summary: "A message was invalid, or a synthesis failed. The socket stays open.",
    payload: closed({ type: { const: "error" }, message: { type: "string" }, contextId }, ["contextId"]),
  },
};

/** Describes the event `done` of `/ws2`, which differs from the event of `/ws3`. */
export const flaggedDone = {
  summary: "The turn has ended.",
  payload: closed({ type: { const: "done" }, done: { const: true }, contextId }),
};

export const textRequest = {
  summary: "Text to synthesize. A frame with exactly `<FLUSH>`, `<CLEAR>` or `<EOS>` is an operation.",
  contentType: "text/plain",
  payload: { type: "string" },
};

export const audioEvent = {
  summary: "Audio in the format of the query, in whole samples.",
  contentType: "application/octet-stream",
  payload: { type: "string", format: "binary" },
};

const { speaker, lang, speedAlpha, noTextNormalization, pauseBetweenBrackets } = fields;

/** Describes the query of the upgrade. The server ignores unknown names. */
export const query = {
  type: "object",
  properties: {
    speaker,
    modelId: {
      type: "string",
      description: `${modelIds.map((id) => `\`${id}\``).join(", ")}, or an alias. Default: the model of the voice.`,
    },
    lang,
    audioFormat: {
      type: "string",
      enum: [...socketFormats],
      default: "wav",
      description: "The format, or its media type.",
    },
    samplingRate: { type: "integer", description: "Hz." },
    segment: {
      type: "string",
      enum: [...segmentModes],
      default: "bySentence",
      description: "When the server starts to synthesize text.",
    },
    speedAlpha: {
      ...speedAlpha,
      description:
        "Below 1 is faster with `mist`, `mistv1` and `mistv2`; above 1 is faster with `mistv3`, `coda` and `arcana`.",
    },
    timeScaleFactor: {
      type: "number",
      description: "0.4 to 2.5. Below 1 is faster. Ignored with `mistv2`.",
    },
    timestampBase: {
      type: "string",
      enum: ["synthesis", "stream"],
      default: "synthesis",
      description:
        "Origin of word timestamps. `stream`: the last `done`. `synthesis`: the start of each synthesis.",
    },
    noTextNormalization,
    pauseBetweenBrackets,
    phonemizeBetweenBrackets: fields.phonemizeBetweenBrackets,
    inlineSpeedAlpha: fields.inlineSpeedAlpha,
    saveOovs: fields.saveOovs,
    repetition_penalty: fields.repetition_penalty,
    temperature: fields.temperature,
    top_p: fields.top_p,
    max_tokens: fields.max_tokens,
  },
  required: ["speaker"],
};
