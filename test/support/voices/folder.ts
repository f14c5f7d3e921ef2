import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type KokoroChoice,
  kokoroStyle,
  largePiper,
  type PiperChoice,
  tinyKokoro,
  tinyPiper,
} from "./random-voices.ts";

const symbols =
  " !'(),-.:;?abcdefhijklmnopqrstuvwxyzæçðøħŋœɐɑɒɔəɚɛɜɡɣɪɫɲɹɾʁʃʊʌʒʔˈˌːθχᵻɕɨʎβ\u0303\u0327\u0329\u0361";

export interface KokoroFiles extends KokoroChoice {
  readonly espeak?: string;
  /** Fields that replace fields of the two voices in the manifest. */
  readonly voices?: readonly object[];
}

export interface PiperFiles extends PiperChoice {
  /** The language and country, as Piper writes them, such as en_US. */
  readonly language?: string;
  readonly espeak?: string;
  readonly rate?: number;
  readonly config?: object;
}

/** Returns the content of the configuration file of a Piper model. */
function piperConfig({ speakers = 1, language = "en_US", espeak = "en-us", ...more }: PiperFiles = {}) {
  const named = Array.from({ length: speakers }, (_, i) => [`speaker${i}`, i]);
  return {
    audio: { sample_rate: more.rate ?? 22_050, quality: "x_low" },
    espeak: { voice: espeak },
    inference: { noise_scale: 0.1, length_scale: 1, noise_w: 0.8 },
    phoneme_type: "espeak",
    phoneme_map: {},
    phoneme_id_map: {
      _: [0],
      "^": [1],
      $: [2],
      ...Object.fromEntries([...symbols].map((symbol, i) => [symbol, [i + 3]])),
    },
    num_symbols: 256,
    num_speakers: speakers,
    speaker_id_map: speakers > 1 ? Object.fromEntries(named) : {},
    piper_version: "1.0.0",
    language: { code: language },
    ...more.config,
  };
}

/** A folder of voices like that of an administrator. Each file appears atomically by a rename. */
export class VoicesFolder {
  readonly path = mkdtempSync(join(tmpdir(), "svc-tts-voices-"));

  /** Writes NAME.onnx and NAME.onnx.json. Returns the SHA-256 digest of the model. */
  piper(name: string, files: PiperFiles = {}): string {
    const model = tinyPiper(files);
    this.write(`${name}.onnx.json`, JSON.stringify(piperConfig(files)));
    return this.write(`${name}.onnx`, model);
  }

  /** Writes NAME.onnx with the size of a real voice, and NAME.onnx.json. */
  largePiper(name: string): void {
    this.write(`${name}.onnx.json`, JSON.stringify(piperConfig()));
    this.write(`${name}.onnx`, largePiper());
  }

  /** Writes a folder NAME with a Kokoro model and the voices NAME-a and NAME-b. */
  kokoro(name: string, { espeak = "en-us", voices: more = [], ...choice }: KokoroFiles = {}): void {
    const sha256 = this.write(`${name}/model.onnx`, tinyKokoro(choice));
    const vocab = Object.fromEntries([...`${symbols}AIOQTWYʤʧᵊᵻ`].map((symbol, i) => [symbol, i + 1]));
    this.write(`${name}/config.json`, JSON.stringify({ vocab }));
    const voices = ["a", "b"].map((letter, i) => {
      this.write(`${name}/${letter}.bin`, kokoroStyle(i + 1));
      return {
        id: `${name}-${letter}`,
        language: "eng",
        espeak,
        gender: "female",
        style: `${letter}.bin`,
        ...more[i],
      };
    });
    this.json(`${name}/manifest.json`, {
      kind: "kokoro",
      model: "model.onnx",
      sha256,
      vocabulary: "config.json",
      license: "Apache-2.0",
      voices,
    });
  }

  json(name: string, value: unknown): void {
    this.write(name, JSON.stringify(value));
  }

  /** Writes a file. Returns its SHA-256 digest. */
  write(name: string, content: string | Buffer): string {
    const target = join(this.path, name);
    mkdirSync(dirname(target), { recursive: true });
    const hidden = join(dirname(target), `.${createHash("sha1").update(name).digest("hex")}`);
    writeFileSync(hidden, content);
    renameSync(hidden, target);
    return createHash("sha256").update(content).digest("hex");
  }

  remove(...names: readonly string[]): void {
    for (const name of names) rmSync(join(this.path, name), { recursive: true });
  }

  delete(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
