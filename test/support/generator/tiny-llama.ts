/**
 * A language model of random weights that speaks in time: whatever it says, slot follows slot, and what it says of a slot depends on the text. It is a Llama of one
 * layer, so vLLM serves it as any other.
 */
import { gaussian } from "../voices/random-voices.ts";
import { tinyCodec } from "./tiny-codec.ts";

const hidden = 64;
const heads = 2;
const headSize = 32;
const inner = 64;
const vocabulary = 768;
/** Strength of the order of slots: far above what temperature or penalties do. */
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

/** `config.json` of Hugging Face's. */
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

/** `model.safetensors`. */
export function llamaWeights(): Buffer {
  const random = gaussian(23);
  const slots = tinyCodec.slots.length;
  const embedding = random(vocabulary * hidden, 1);
  const head = random(vocabulary * hidden, 0.3);
  for (let token = 0; token < vocabulary; token++) {
    embedding.fill(0, token * hidden, token * hidden + slots);
    head.fill(0, token * hidden, token * hidden + slots);
  }
  /** After `before`, tokens of `slot` are likely. */
  const follows = (slot: number) => (slot + slots - 1) % slots;
  for (let slot = 0; slot < slots; slot++) {
    for (let code = 0; code < tinyCodec.codebook; code++) {
      const token = tinyCodec.base + slot * tinyCodec.codebook + code;
      embedding[token * hidden + slot] = slotStrength;
      head[token * hidden + follows(slot)] = order;
    }
  }
  embedding[special.speech * hidden + follows(0)] = slotStrength; // speech begins with slot 0
  head.fill(0, special.stop * hidden, (special.stop + 1) * hidden);
  head[special.stop * hidden + follows(0)] = order * 1.07; // after a whole frame it may end
  const ones = new Float32Array(hidden).fill(1);
  const output = random(hidden * heads * headSize, 0.12);
  output.fill(0, 0, slots * heads * headSize); // the text has no say in the order of slots
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

/** `tokenizer.json`: a token for each byte, and the special ones. */
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

/** The character by which GPT-2's byte-level vocabularies write a byte: itself where it can be seen, else one from 256 on, in order. */
function byteCharacter(byte: number): string {
  if (isSeen(byte)) return String.fromCodePoint(byte);
  const unseenBefore = Array.from({ length: byte }, (_, other) => other).filter(
    (other) => !isSeen(other),
  ).length;
  return String.fromCodePoint(256 + unseenBefore);
}

function isSeen(byte: number): boolean {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

interface Weights {
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

/** The format of Hugging Face's safetensors: the length of a JSON header, the header, the numbers. */
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
