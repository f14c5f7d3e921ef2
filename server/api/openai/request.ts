import Type from "typebox";
import { type ModelId, modelIds, type Profile } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { samplingDefaults, samplingNames } from "../../contract/speech.ts";
import { FieldReader, formatValue } from "../request/field-reader.ts";
import { fields } from "../request/fields.ts";
import {
  plainMarkup,
  type RequestRules,
  readText,
  type SpeechRequest,
  someVoices,
} from "../request/speech-request.ts";
import { type HttpFormat, streamTypes } from "../request/variants.ts";
import { type OpenaiFormat, openaiFormats, openaiModels, openaiVoices } from "./names.ts";

/** The supported fields of OpenAI's `POST /v1/audio/speech`. Other fields are ignored. */
export const openaiFields = {
  model: Type.Enum([...modelIds, ...Object.keys(openaiModels)], {
    description: `A model of this server, or an OpenAI model: ${Object.keys(openaiModels).join(", ")} select \`arcana\`.`,
  }),
  input: fields.text,
  voice: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "A voice of the model. With `arcana`, also a name of an OpenAI voice.",
  }),
  speed: Type.Number({ minimum: 0.25, maximum: 4, description: "Above 1 is faster. Default: 1." }),
  response_format: Type.Enum([...openaiFormats], {
    description: "Default: `mp3`. The sampling rate is always 24 kHz.",
  }),
  stream_format: Type.Enum(["audio", "sse"], { description: "Default: `audio`." }),
} as const;

/**
 * The sampling rate in Hz of OpenAI's service. OpenAI's clients cannot request a rate, and play PCM at this
 * rate.
 */
const openaiRate = 24_000;

export interface OpenaiRequest extends SpeechRequest {
  readonly form: "stream" | "events";
  readonly mediaType: string;
}

const formats: Readonly<Record<OpenaiFormat, HttpFormat>> = {
  mp3: "mp3",
  opus: "ogg",
  wav: "wav",
  pcm: "pcm",
};

/**
 * Validates a body of the OpenAI-compatible API by the rules of the native API.
 * @throws Failure `invalid_request` with JSON pointers.
 */
export function readOpenaiRequest(
  body: unknown,
  { profile, voices }: Omit<RequestRules, "highestRate">,
): OpenaiRequest {
  const reader = new FieldReader(body, ["input"]);
  const model = reader.readRequired<string>("model", openaiFields.model) ?? "";
  const format = reader.read<OpenaiFormat>("response_format", openaiFields.response_format) ?? "mp3";
  const form = reader.read<"audio" | "sse">("stream_format", openaiFields.stream_format);
  reader.finish(); // The rules of the other fields depend on the model.
  const modelId = modelOf(model);
  const voice = readVoice(reader, modelId, voices);
  const request: OpenaiRequest = {
    invocation: {
      modelId,
      speaker: voice?.id ?? "",
      lang: voice?.language ?? "",
      text: readText(reader, "input", modelId),
      stretch: 1 / readSpeed(reader, modelId, profile),
      ...plainMarkup,
      sampling: samplingDefaults,
      ...(modelId === "arcana" && { unsetSampling: samplingNames }),
    },
    rate: openaiRate,
    form: form === "sse" ? "events" : "stream",
    format: formats[format],
    mediaType: streamTypes[formats[format]][0],
  };
  reader.finish();
  return request;
}

function modelOf(name: string): ModelId {
  return Object.hasOwn(openaiModels, name)
    ? openaiModels[name as keyof typeof openaiModels]
    : (name as ModelId);
}

function readVoice(
  reader: FieldReader,
  modelId: ModelId,
  voices: readonly ListedVoice[],
): ListedVoice | undefined {
  const name = reader.readRequired<string>("voice", openaiFields.voice);
  if (name === undefined) return undefined;
  const isAlias = modelId === "arcana" && Object.hasOwn(openaiVoices, name);
  const id: string = isAlias ? openaiVoices[name as keyof typeof openaiVoices] : name;
  const voice = voices.find((known) => known.id === id && known.models.includes(modelId));
  if (!voice) {
    reader.refuse(
      "voice",
      `must be a voice of ${modelId}, such as ${someVoices(modelId, voices)}, not ${formatValue(name)}. GET /v1/voices lists the voices`,
    );
  }
  return voice;
}

function readSpeed(reader: FieldReader, modelId: ModelId, profile: Profile): number {
  const speed = reader.read<number>("speed", openaiFields.speed) ?? 1;
  if (speed !== 1 && modelId === "arcana" && profile === "cloud") {
    reader.refuse("speed", "is not supported by arcana with the profile cloud; leave it out");
  }
  return speed;
}
