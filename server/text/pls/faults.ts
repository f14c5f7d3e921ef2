import type { IpaFault } from "../../contract/text/ipa.ts";
import type { PhonemesProblem } from "../../contract/text/phonemes.ts";

/** An error in a lexicon file, with its position. */
export interface PlsProblem {
  /** The line number, from 1. */
  readonly line: number;
  readonly fault: PlsFault;
}

/** An error in a lexicon file. Quotations of the file are shortened. */
export type PlsFault =
  /** The errors after which the rest of the file cannot be read. */
  | { readonly kind: "xml"; readonly column: number; readonly saying: string }
  | { readonly kind: "encoding"; readonly encoding: string }
  | { readonly kind: "not-utf-8" | "doctype" | "version" | "language" }
  | { readonly kind: "deep" | "full"; readonly most: number }
  | { readonly kind: "root"; readonly namespace: string }
  | { readonly kind: "alphabet"; readonly allowed: readonly string[] }
  /** The errors of one entry. */
  | { readonly kind: "misplaced"; readonly element: string; readonly parent: string }
  | { readonly kind: "no-grapheme" | "no-phoneme" }
  | { readonly kind: "phoneme"; readonly text: string; readonly why: SoundsFault }
  | { readonly kind: "grapheme"; readonly text: string }
  /** An earlier line has the same word with other sounds. */
  | { readonly kind: "twice"; readonly text: string; readonly line: number };

export type SoundsFault =
  | { readonly kind: "long"; readonly length: number; readonly most: number }
  | { readonly kind: "alphabet"; readonly allowed: readonly string[] }
  | { readonly kind: "written"; readonly problem: PhonemesProblem }
  | IpaFault;
