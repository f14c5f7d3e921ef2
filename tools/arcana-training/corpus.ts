/** Creates the speech corpus. Usage: node corpus.ts FOLDER MINUTES_PER_VOICE SEED */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { readPhones } from "../../server/engine/arcana/phones.ts";
import { type FliteLibrary, loadFlite, type Pointer } from "../../server/engine/flite/library.ts";
import { type CorpusWord, runsOfFour, sentences, sharesWords } from "./sentences.ts";

const rate = 16_000;
const speakers = ["awb", "rms", "slt"] as const;

const [, , folder = "corpus", minutes = "40", seed = "1"] = process.argv;
const heldOut = runsOfFour(readFileSync(new URL("held-out.txt", import.meta.url), "utf8").split("\n"));
const flite = loadFlite();
mkdirSync(folder, { recursive: true });
for (const [number, speaker] of speakers.entries()) speakAll(speaker, Number(seed) * 100 + number);

function speakAll(speaker: (typeof speakers)[number], sentenceSeed: number): void {
  const audio = openSync(join(folder, `${speaker}.s16`), "w");
  const lines: string[] = [];
  let samples = 0;
  for (const words of sentences(sentenceSeed)) {
    if (samples >= Number(minutes) * 60 * rate) break;
    if (sharesWords(words, heldOut)) continue;
    const spoken = speak(flite, speaker, words);
    lines.push(
      JSON.stringify({ speaker, offset: samples, samples: spoken.samples.length, phones: spoken.phones }),
    );
    const bytes = new Uint8Array(spoken.samples.buffer);
    for (let written = 0; written < bytes.length; ) written += writeSync(audio, bytes, written);
    samples += spoken.samples.length;
  }
  closeSync(audio);
  writeFileSync(join(folder, `${speaker}.jsonl`), `${lines.join("\n")}\n`);
  console.info(`${speaker}: ${lines.length} sentences, ${(samples / rate / 60).toFixed(1)} minutes`);
}

function speak(flite: FliteLibrary, speaker: (typeof speakers)[number], words: readonly CorpusWord[]) {
  flite.seedNoise(1);
  const utt = flite.newUtterance();
  try {
    writeWords(utt, words);
    flite.init(utt, flite.voice(speaker));
    const pieces: Int16Array[] = [];
    flite.stream(utt, (read) => {
      pieces.push(read());
      return rate;
    });
    flite.synthTokens(utt);
    const samples = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      samples.set(piece, at);
      at += piece.length;
    }
    const phones = readPhones(flite, utt).map(({ phone, item }) => [
      ...Object.values(phone),
      Math.round(flite.floatAt(item, "end") * 1000),
    ]);
    return { samples, phones };
  } finally {
    flite.deleteUtterance(utt);
  }
}

function writeWords(utt: Pointer, words: readonly CorpusWord[]): void {
  const relation = flite.createRelation(utt, "Token");
  for (const [place, { text, mark }] of words.entries()) {
    const item = flite.append(relation, null);
    flite.setString(item, "name", text);
    flite.setString(item, "whitespace", place === 0 ? "" : " ");
    flite.setString(item, "prepunctuation", "");
    flite.setString(item, "punc", mark);
    flite.setInt(item, "file_pos", place);
    flite.setInt(item, "line_number", 0);
    flite.setInt(item, "written", place);
  }
}
