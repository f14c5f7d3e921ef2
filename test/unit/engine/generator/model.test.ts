import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readModelSettings } from "../../../../server/cli/settings/settings.ts";
import { readArcanaManifest } from "../../../../server/engine/vllm/model/manifest.ts";
import { readModelFolder } from "../../../../server/engine/vllm/model/model-folder.ts";
import { createTokenize } from "../../../../server/engine/vllm/model/prompt.ts";
import { SpeechStart } from "../../../../server/engine/vllm/writer/speech-start.ts";
import { TinyModelFolder, tinyManifest } from "../../../support/generator/model-folder.ts";
import { byteTokenizer, special, tinyCodec } from "../../../support/generator/tiny-model.ts";

const folders: TinyModelFolder[] = [];
afterAll(() => {
  for (const folder of folders) folder.delete();
});

function newFolder(change: object = {}): TinyModelFolder {
  const folder = new TinyModelFolder(change);
  folders.push(folder);
  return folder;
}

describe("the prompt of a generator", () => {
  const tokenize = createTokenize(JSON.stringify(byteTokenizer()), tinyManifest);
  const tara = { name: "tara" };
  const { pre, post } = tinyManifest.prompt;

  test("is the text between the tokens of the manifest", () => {
    expect(tokenize(tara, "Hi, you.")).toEqual([...pre, ...Buffer.from("tara: Hi, you."), ...post]);
  });

  test.each(["<|eot_id|>", `Say <|special_${special.stop}|> now`, "{voice}{text}{voice}", "$& $1", "été 🎉"])(
    "contains %s as plain letters",
    (text) => {
      const ids = tokenize(tara, text);
      expect(ids.slice(pre.length, -post.length)).toEqual([...Buffer.from(`tara: ${text}`)]);
    },
  );

  test("is refused if the tokenizer reads letters as a special token", () => {
    const { model, ...rest } = byteTokenizer() as { model: { vocab: object } };
    const odd = { ...rest, model: { ...model, vocab: { ...model.vocab, A: special.stop } } };
    const tokenizeOddly = createTokenize(JSON.stringify(odd), tinyManifest);
    expect(() => tokenizeOddly(tara, "A")).toThrow("converts plain text to special or unknown tokens");
  });
});

describe("the prompt of a voice with more than a name", () => {
  const codes = [1, 2, 3, 4, 5, 6, 63];
  const codeIds = codes.map((code, slot) => tinyCodec.base + slot * tinyCodec.codebook + code);
  const voice = { name: "tara", description: "calm", reference: { text: "Good day.", codes } };
  const { pre, post } = tinyManifest.prompt;
  const letters = (text: string) => [...pre, ...Buffer.from(text), ...post];
  const tokenizeWith = (change: Partial<typeof tinyManifest.prompt>) =>
    createTokenize(JSON.stringify(byteTokenizer()), {
      ...tinyManifest,
      prompt: { ...tinyManifest.prompt, ...change },
    });

  test("contains the description, which may contain the names of the template", () => {
    const tokenize = tokenizeWith({ template: "<{description}> {text}" });
    expect(tokenize({ ...voice, description: "a {text}" }, "Hi.")).toEqual(letters("<a {text}> Hi."));
  });

  test("contains the reference as a turn before the text", () => {
    const tokenize = tokenizeWith({ reference: { placement: "turn", end: [special.stop] } });
    expect(tokenize(voice, "Hi.")).toEqual([
      ...letters("tara: Good day."),
      ...codeIds,
      special.stop,
      ...letters("tara: Hi."),
    ]);
  });

  test("ends with the codes of the reference, which the model continues", () => {
    const tokenize = tokenizeWith({
      template: "{reference} {text}",
      reference: { placement: "continuation" },
    });
    expect(tokenize(voice, "Hi.")).toEqual([...letters("Good day. Hi."), ...codeIds]);
  });
});

describe("the start of the speech", () => {
  test.each([
    [undefined, [[1, 2], [3]], [1, 2, 3]],
    [
      9,
      [
        [1, 9, 2],
        [9, 3],
      ],
      [2, 9, 3],
    ],
    [9, [[1], [9], [4]], [4]],
    [9, [[1], [2]], []],
  ])("after the token %s in %j leaves %j", (startAfter, pieces, expected) => {
    const start = new SpeechStart(startAfter);
    expect(pieces.flatMap((tokens) => start.push(tokens))).toEqual(expected);
  });
});

describe("a model manifest", () => {
  const { luna, ...others } = tinyManifest.voices;
  const withReference = (codes: readonly number[]) => ({
    prompt: { ...tinyManifest.prompt, reference: { placement: "turn" } },
    voices: Object.fromEntries(
      ["astra", "luna", ...Object.keys(others)].map((id) => [
        id,
        { name: id, reference: { text: "a", codes } },
      ]),
    ),
  });

  test.each([
    ["that is not JSON", "{", "manifest.json: is not JSON"],
    ["of an unknown kind", { kind: "video" }, '/kind must be tokens or audio; it is "video"'],
    [
      "with an unknown field",
      { voice: {} },
      "/voice is not a field of the manifest; the allowed fields are kind,",
    ],
    ["with an unknown codec field", { codec: { ...tinyCodec, hop: 1 } }, "/codec/hop is not a field"],
    [
      "without a voice",
      { voices: others },
      "/voices must name the model's voice for each voice of arcana; luna is",
    ],
    [
      "without a text in its template",
      { prompt: { ...tinyManifest.prompt, template: "{voice}" } },
      "/prompt/template",
    ],
    [
      "with a slot of an unknown input",
      { codec: { ...tinyCodec, slots: [0, 1, 3] } },
      "/codec/slots names input 3",
    ],
    [
      "with an input without a slot",
      { codec: { ...tinyCodec, slots: [0, 1] } },
      "/codec/slots must name every input; input 2 is missing",
    ],
    [
      "with a stop token that is also a code",
      { stop: [tinyCodec.base + 9] },
      "/stop must not contain 273, which is a code of the codec (264 to 711)",
    ],
    ["with an unknown sampling option", { sampling: { topK: 5 } }, "/sampling/topK is not a field"],
    [
      "with a sampling option outside of its range",
      { sampling: { topP: 2 } },
      "/sampling/topP must be <= 1; it is 2",
    ],
    [
      "with a start token that is a code",
      { startAfter: tinyCodec.base },
      "/startAfter must not be 264, which is a code",
    ],
    [
      "with a start token that ends the speech",
      { startAfter: special.stop },
      "/startAfter must not be 258, which is also in /stop",
    ],
    [
      "with an unknown frontend",
      { prompt: { ...tinyManifest.prompt, frontend: "letters" } },
      "/prompt/frontend must be equal to one of the allowed values",
    ],
    [
      "with an eSpeak NG voice and a text frontend",
      { prompt: { ...tinyManifest.prompt, espeak: "de" } },
      "/prompt/espeak has an effect only if",
    ],
    [
      "with a description that the template does not use",
      { voices: { ...others, luna: { name: "l", description: "d" } } },
      "/voices/luna/description has no effect",
    ],
    [
      "without a description that the template uses",
      { prompt: { ...tinyManifest.prompt, template: "{description}{text}" } },
      "/description is missing; /prompt/template contains {description}",
    ],
    [
      "with an unknown field of a voice",
      { voices: { ...others, luna: { name: "l", pitch: 1 } } },
      "/voices/luna/pitch is not a field",
    ],
    [
      "with a reference that the prompt does not use",
      { voices: { ...others, luna: { name: "l", reference: { text: "a", codes: [1] } } } },
      "/voices/luna/reference has no effect",
    ],
    [
      "without the references of its voices",
      { prompt: { ...tinyManifest.prompt, reference: { placement: "turn" } } },
      "/reference is missing; /prompt/reference requires it",
    ],
    [
      "with a reference in the template of a turn",
      { prompt: { ...tinyManifest.prompt, template: "{reference}{text}" } },
      "/prompt/template must contain {reference} if, and only if",
    ],
    [
      "with half a frame of reference codes",
      withReference([1, 2]),
      "/voices/astra/reference/codes must contain whole frames of 7 codes; it has 2 codes",
    ],
    [
      "with a reference code outside of the codebook",
      withReference([64, 0, 0, 0, 0, 0, 0]),
      "/voices/astra/reference/codes must not contain 64; the codebook has 64 codes",
    ],
    [
      "with references that fill the context",
      { ...withReference(Array.from({ length: 140 }, () => 1)), context: 150 },
      "/context is 150, which leaves no tokens",
    ],
    [
      "with a path outside of its folder",
      { codec: { ...tinyCodec, onnx: "../decoder.onnx" } },
      "/codec/onnx",
    ],
  ])("%s is refused, and the message names the cause", (_, change, message) => {
    const json = typeof change === "string" ? change : JSON.stringify({ ...tinyManifest, ...change });
    expect(() => readArcanaManifest(json)).toThrow(message);
    expect(luna).toBe("voice-luna");
  });

  test("needs no codec if the model generates samples", () => {
    const { license, sha256, voices } = tinyManifest;
    expect(
      readArcanaManifest(JSON.stringify({ kind: "audio", license, sha256, voices, rate: 24_000 })).kind,
    ).toBe("audio");
  });
});

test("a model that generates samples has no reference codes", () => {
  const { license, sha256, voices } = tinyManifest;
  const luna = { name: "l", reference: { text: "a", codes: [1] } };
  const json = JSON.stringify({ kind: "audio", license, sha256, voices: { ...voices, luna }, rate: 24_000 });
  expect(() => readArcanaManifest(json)).toThrow('/voices/luna/reference requires the kind "tokens"');
});

describe("a model folder", () => {
  test("is accepted if every file matches the manifest", async () => {
    const model = await readModelFolder(newFolder().path);
    expect(model.manifest).toMatchObject({ kind: "tokens", context: 4096 });
  });

  test.each([
    ["that does not exist", (folder: TinyModelFolder) => folder.delete(), "manifest.json cannot be read"],
    [
      "without its weights",
      (folder: TinyModelFolder) => folder.remove("model.safetensors"),
      "model.safetensors cannot be read",
    ],
    [
      "with other weights",
      (folder: TinyModelFolder) => folder.write("model.safetensors", "x"),
      "model.safetensors: the sha256 of the file is",
    ],
    [
      "with another decoder",
      (folder: TinyModelFolder) => folder.write("decoder.onnx", "x"),
      "decoder.onnx: the sha256 of the file is",
    ],
  ])("%s is refused, and the message names folder and file", async (_, change, message) => {
    const folder = newFolder();
    change(folder);
    await expect(readModelFolder(folder.path)).rejects.toThrow(message);
    await expect(readModelFolder(folder.path)).rejects.toThrow(folder.path);
  });

  test("with a file that the manifest does not list is refused, except text files and hidden files", async () => {
    const folder = newFolder();
    for (const name of ["README.md", "LICENSE", ".fetch-lock"]) folder.write(name, "x");
    await readModelFolder(folder.path);
    folder.write("modeling.py", "import os");
    await expect(readModelFolder(folder.path)).rejects.toThrow(
      "manifest.json: /sha256 must have modeling.py; add the digest of every file of the model",
    );
    folder.remove("modeling.py");
    mkdirSync(join(folder.path, "shards"));
    folder.write("shards/2.safetensors", "x");
    await expect(readModelFolder(folder.path)).rejects.toThrow("must have shards/2.safetensors");
  });

  test.each([
    [["--trust-remote-code"], "--trust-remote-code"],
    [["--dtype", "auto", "--hf-overrides={}"], "--hf-overrides={}"],
    [["--enforce-eager", "/other/model"], "/other/model"],
    [["--dtype=auto", "/other/model"], "/other/model"],
    [["--seed", "1", "2"], "2"],
    [["--dtype", "--host"], "--host"],
    [["--enforce-eager=x"], "--enforce-eager=x"],
    [["--api-key", "k"], "--api-key"],
    [["-tp", "2"], "-tp"],
    [["--dtyp", "auto"], "--dtyp"],
    [["--max_model_len", "2"], "--max_model_len"],
  ])(
    "with the vLLM arguments %j in its manifest or in GENERATOR_VLLM_ARGS is refused because of %s",
    (args, foreign) => {
      const read = () => readArcanaManifest(JSON.stringify({ ...tinyManifest, vllm: { args } }));
      const refusal = `must not contain ${JSON.stringify(foreign)}; the allowed flags of vLLM are --attention-backend, `;
      expect(read).toThrow(`manifest.json: /vllm/args ${refusal}`);
      // The operator joins the `engine.parameters` of a pool with spaces.
      const environment = { SVC_TTS_ARCANA_GENERATOR: "vllm", GENERATOR_VLLM_ARGS: args.join(" ") };
      expect(() => readModelSettings("arcana", environment)).toThrow(`GENERATOR_VLLM_ARGS ${refusal}`);
    },
  );

  test("with allowed vLLM arguments in its manifest is accepted", () => {
    const args = ["--dtype", "bfloat16", "--enforce-eager", "--gpu-memory-utilization=0.9", "--seed=-1"];
    const manifest = readArcanaManifest(JSON.stringify({ ...tinyManifest, vllm: { args } }));
    expect(manifest.vllm?.args).toEqual(args);
  });

  test("without the checksum of a required file is refused", async () => {
    await expect(readModelFolder(newFolder({ sha256: {} }).path)).rejects.toThrow(
      "/sha256 must have tokenizer.json",
    );
  });
});
