import { toCardinal as ell } from "n2words/el-GR";
import { toCardinal as hin } from "n2words/hi-IN";
import { toCardinal as ita } from "n2words/it-IT";
import { toCardinal as nld } from "n2words/nl-NL";
import { toCardinal as pol } from "n2words/pl-PL";
import { toCardinal as por } from "n2words/pt-PT";
import { toCardinal as rus } from "n2words/ru-RU";
import { toCardinal as swe } from "n2words/sv-SE";
import { toCardinal as tur } from "n2words/tr-TR";
import { readAmount } from "./common/amount.ts";
import type { NormalizationWindow, WordReading } from "./common/window.ts";

interface Numbers {
  readonly decimal: "." | ",";
  readonly cardinal: (value: bigint) => string;
}

const numbers: Readonly<Record<string, Numbers>> = {
  ell: { decimal: ",", cardinal: ell },
  hin: { decimal: ".", cardinal: hin },
  ita: { decimal: ",", cardinal: ita },
  nld: { decimal: ",", cardinal: nld },
  pol: { decimal: ",", cardinal: pol },
  por: { decimal: ",", cardinal: por },
  rus: { decimal: ",", cardinal: rus },
  swe: { decimal: ",", cardinal: swe },
  tur: { decimal: ",", cardinal: tur },
};

/**
 * The highest number of digits that the package converts. For a million and above, the package omits the
 * plural in some of these languages, so the engine reads these numbers.
 */
const maxDigits = 6;
/** The highest number of digits of a number. A longer number is likely to be a code. */
const maxEngineDigits = 12;

/** Reads whole numbers in languages that have no rules here. The engine reads everything else. */
export function readWholeNumber(window: NormalizationWindow, language: string): WordReading | undefined {
  const rules = Object.hasOwn(numbers, language) ? numbers[language] : undefined;
  if (!rules) return undefined;
  const amount = readAmount(window.text, rules);
  if (amount?.fraction !== "" || amount.sign !== "") return undefined;
  const { whole, grouped } = amount;
  const isOrdinal = window.word.after.startsWith(".") && window.at(1) !== undefined;
  if (/^0./u.test(whole) || isOrdinal) return undefined;
  if (whole.length <= maxDigits) return { spoken: [rules.cardinal(BigInt(whole))] };
  return grouped && whole.length <= maxEngineDigits ? { spoken: [whole] } : undefined;
}
