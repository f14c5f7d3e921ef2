/**
 * Generates a tiny model with random weights: a language model and a codec. The language model is a Llama
 * with one layer, which the real vLLM can serve. For every text it writes the slots of frames in order. The
 * codes in the slots depend on the text.
 */
import type { CodecManifest } from "../../../server/engine/vllm/model/manifest-schema.ts";
import { GraphWriter } from "../voices/onnx-writer.ts";
import { gaussian } from "../voices/random-voices.ts";

const codebook = 64;
const width = 4;
/** The number of codes of the finest codebook in a frame. */
const steps = 4;
const hop = 512;

/**
 * A codec with random weights and the structure of SNAC at 24 kHz: three codebooks and seven slots per frame.
 */
export const tinyCodec: CodecManifest = {
  onnx: "decoder.onnx",
  rate: 24_000,
  frameSamples: steps * hop,
  base: 264,
  codebook,
  slots: [0, 1, 2, 2, 1, 2, 2],
  inputs: ["audio_codes.0", "audio_codes.1", "audio_codes.2"],
  output: "audio_values",
  left: 2,
  right: 2,
  hops: [1, 2, 4, 8],
};

/** Returns the decoder of the codec (20 kB). As with SNAC, the audio of a frame depends on its neighbours. */
export function tinyDecoder(): Buffer {
  const graph = new GraphWriter();
  const random = gaussian(17);
  const layers = tinyCodec.inputs.map((input, i) => {
    const rate = tinyCodec.slots.filter((slot) => slot === i).length;
    graph.input(input, "int64", ["batch", `codes${i}`]);
    const table = graph.floats(random(codebook * width, 0.5), [codebook, width]);
    const rows = graph.add("Transpose", [graph.add("Gather", [table, input])], { perm: [0, 2, 1] });
    return graph.add("Resize", [rows, "", graph.floats([1, 1, steps / rate], [3])]); // The default mode of Resize is `nearest`.
  });
  const sum = graph.add("Sum", layers);
  const mixing = graph.floats(random(width * width * 9, 0.25), [width, width, 9]);
  const mixed = graph.add("Tanh", [graph.add("Conv", [sum, mixing], { pads: [4, 4], kernel_shape: [9] })]);
  const kernel = graph.floats(random(width * 2 * hop, 0.1), [width, 1, 2 * hop]);
  const wave = graph.add("ConvTranspose", [mixed, kernel], {
    strides: [hop],
    pads: [hop / 2, hop / 2],
    kernel_shape: [2 * hop],
  });
  graph.add("Tanh", [wave], {}, "audio_values");
  graph.output("audio_values", "float", ["batch", 1, "samples"]);
  return graph.bytes("tiny codec");
}

const hidden = 64;
const heads = 2;
const headSize = 32;
const inner = 64;
const vocabulary = 768;
/** The weight that keeps the slots in order. It exceeds the effects of the temperature and of penalties. */
const order = 12;
const slotStrength = 4;

export const special = {
  begin: 256,
  endOfTurn: 257,
  stop: 258,
  human: 259,
  machine: 260,
  speech: 261,
} as const;

/** The content of `config.json`, in the format of Hugging Face. */
export const llamaConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: vocabulary,
  hidden_size: hidden,
  intermediate_size: inner,
  num_hidden_layers: 1,
  num_attention_heads: heads,
  num_key_value_heads: 1,
  head_dim: headSize,
  hidden_act: "silu",
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: false,
  attention_bias: false,
  mlp_bias: false,
  bos_token_id: special.begin,
  eos_token_id: special.stop,
  torch_dtype: "float32",
};

/** Returns the content of `model.safetensors`. */
export function llamaWeights(): Buffer {
  const random = gaussian(23);
  const slots = tinyCodec.slots.length;
  const embedding = random(vocabulary * hidden, 1);
  const head = random(vocabulary * hidden, 0.3);
  for (let token = 0; token < vocabulary; token++) {
    embedding.fill(0, token * hidden, token * hidden + slots);
    head.fill(0, token * hidden, token * hidden + slots);
  }
  /** Returns the slot before a slot. */
  const slotBefore = (slot: number) => (slot + slots - 1) % slots;
  for (let slot = 0; slot < slots; slot++) {
    for (let code = 0; code < tinyCodec.codebook; code++) {
      const token = tinyCodec.base + slot * tinyCodec.codebook + code;
      embedding[token * hidden + slot] = slotStrength;
      head[token * hidden + slotBefore(slot)] = order;
    }
  }
  embedding[special.speech * hidden + slotBefore(0)] = slotStrength; // Speech starts with slot 0.
  head.fill(0, special.stop * hidden, (special.stop + 1) * hidden);
  head[special.stop * hidden + slotBefore(0)] = order * 1.07; // The end is possible after a complete frame.
  const ones = new Float32Array(hidden).fill(1);
  const output = random(hidden * heads * headSize, 0.12);
  output.fill(0, 0, slots * heads * headSize); // The text does not influence the order of slots.
  return safetensors({
    "model.embed_tokens.weight": { data: embedding, shape: [vocabulary, hidden] },
    "model.layers.0.input_layernorm.weight": { data: ones, shape: [hidden] },
    "model.layers.0.self_attn.q_proj.weight": {
      data: random(heads * headSize * hidden, 0.2),
      shape: [heads * headSize, hidden],
    },
    "model.layers.0.self_attn.k_proj.weight": {
      data: random(headSize * hidden, 0.2),
      shape: [headSize, hidden],
    },
    "model.layers.0.self_attn.v_proj.weight": {
      data: random(headSize * hidden, 0.2),
      shape: [headSize, hidden],
    },
    "model.layers.0.self_attn.o_proj.weight": { data: output, shape: [hidden, heads * headSize] },
    "model.layers.0.post_attention_layernorm.weight": { data: ones, shape: [hidden] },
    "model.layers.0.mlp.gate_proj.weight": { data: new Float32Array(inner * hidden), shape: [inner, hidden] },
    "model.layers.0.mlp.up_proj.weight": { data: new Float32Array(inner * hidden), shape: [inner, hidden] },
    "model.layers.0.mlp.down_proj.weight": { data: new Float32Array(hidden * inner), shape: [hidden, inner] },
    "model.norm.weight": { data: ones, shape: [hidden] },
    "lm_head.weight": { data: head, shape: [vocabulary, hidden] },
  });
}

/** Returns the content of `tokenizer.json`. It has a token for each byte, and the special tokens. */
export function byteTokenizer(): object {
  const added = Object.values(special).map((id) => ({
    id,
    content: id === special.endOfTurn ? "<|eot_id|>" : `<|special_${id}|>`,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(Array.from({ length: 256 }, (_, byte) => [byteCharacter(byte), byte])),
      merges: [],
    },
  };
}

/**
 * Returns the character for a byte in byte-level vocabularies like that of GPT-2. A printable byte is its own
 * character. The other bytes have the characters from 256 on, in order.
 */
function byteCharacter(byte: number): string {
  if (isPrintable(byte)) return String.fromCodePoint(byte);
  const unprintableBefore = Array.from({ length: byte }, (_, other) => other).filter(
    (other) => !isPrintable(other),
  ).length;
  return String.fromCodePoint(256 + unprintableBefore);
}

function isPrintable(byte: number): boolean {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

interface Weights {
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

/**
 * Writes the safetensors format of Hugging Face: the length of a JSON header, the header, and the numbers.
 */
function safetensors(tensors: Readonly<Record<string, Weights>>): Buffer {
  let at = 0;
  const header = Object.entries(tensors).map(([name, { data, shape }]) => {
    const offsets = [at, at + data.byteLength];
    at += data.byteLength;
    return [name, { dtype: "F32", shape, data_offsets: offsets }];
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const numbers = Object.values(tensors).map(({ data }) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  );
  return Buffer.concat([length, padded, ...numbers]);
}
