import type { FliteLibrary, Pointer } from "../flite/library.ts";

/** One sound of an utterance with its position. A list of sounds is the model's input. */
export interface Phone {
  /** The index in `phoneNames`. */
  readonly phone: number;
  readonly stressed: number;
  readonly accented: number;
  /** The syllable's position in its word: 0 first, 1 last, 2 inside, 3 the only syllable. */
  readonly syllable: number;
  /** 1 if the sound starts its syllable, otherwise 0. */
  readonly onset: number;
  /**
   * The break after the syllable: 0 and 2 no break, 1 end of the word, 3 end of the phrase, 4 end of the
   * utterance.
   */
  readonly breakAfter: number;
  readonly content: number;
  /** The punctuation mark after the word: an index in `marks`. */
  readonly mark: number;
  /** The number of syllables from the start of the phrase and to its end. */
  readonly syllablesIn: number;
  readonly syllablesOut: number;
  /** The token that contains the sound, or -1 for silence. */
  readonly token: number;
}

/** The names of ARPAbet sounds in Flite. `pau` is silence. */
const phoneNames =
  "pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh".split(
    " ",
  );
const marks = ["", ",", ".", "?", "!"] as const;
const syllablePlaces = ["initial", "final", "mid", "single"];
const mostSyllables = 15;

/** Returns the model's input for a sound, in the order of `tools/arcana-training/model.py`. */
export function phoneFields(phone: Phone): number[] {
  return [
    phone.phone,
    phone.stressed,
    phone.accented,
    phone.syllable,
    phone.onset,
    phone.breakAfter,
    phone.content,
    phone.mark,
    phone.syllablesIn,
    phone.syllablesOut,
  ];
}

/** Reads the sounds of an utterance that Flite has analyzed. */
export function readPhones(flite: FliteLibrary, utt: Pointer): { phone: Phone; item: Pointer }[] {
  const phones: { phone: Phone; item: Pointer }[] = [];
  for (let item = flite.head(flite.relation(utt, "Segment")); item; item = flite.next(item)) {
    phones.push({ phone: readPhone(flite, item), item });
  }
  return phones;
}

function readPhone(flite: FliteLibrary, item: Pointer): Phone {
  const phone = Math.max(0, phoneNames.indexOf(flite.stringOf(item, "name")));
  if (phone === 0) return silence;
  const number = (path: string) => flite.floatAt(item, `R:SylStructure.parent.${path}`);
  const text = (path: string) => flite.textAt(item, `R:SylStructure.parent.${path}`);
  return {
    phone,
    stressed: number("stress"),
    accented: number("accented"),
    syllable: Math.max(0, syllablePlaces.indexOf(text("position_type"))),
    onset: flite.floatAt(item, "pos_in_syl") === 0 ? 1 : 0,
    breakAfter: number("syl_break"),
    content: text("parent.gpos") === "content" ? 1 : 0,
    mark: markOf(text("parent.R:Token.parent.punc")),
    syllablesIn: Math.min(mostSyllables, number("R:Syllable.syl_in")),
    syllablesOut: Math.min(mostSyllables, number("R:Syllable.syl_out")),
    token: number("parent.R:Token.parent.written"),
  };
}

const silence: Phone = {
  phone: 0,
  stressed: 0,
  accented: 0,
  syllable: 0,
  onset: 0,
  breakAfter: 0,
  content: 0,
  mark: 0,
  syllablesIn: 0,
  syllablesOut: 0,
  token: -1,
};

/** Returns the index of the first punctuation mark that affects the melody. */
function markOf(written: string): number {
  for (const mark of written) {
    const place = marks.indexOf((mark === ";" || mark === ":" ? "," : mark) as (typeof marks)[number]);
    if (place > 0) return place;
  }
  return 0;
}
