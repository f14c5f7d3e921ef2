/**
 * Converts text of any script to ASCII for Flite. Letters become similar letters, and symbols become words.
 * All other characters are removed.
 */

const symbols: Readonly<Record<string, string>> = {
  "€": " euros ",
  "£": " pounds ",
  "¥": " yen ",
  "¢": " cents ",
  "°": " degrees ",
  "©": " copyright ",
  "®": "",
  "™": "",
  "½": " half ",
  "¼": " quarter ",
  "¾": " three quarters ",
  "×": " times ",
  "÷": " divided by ",
  "±": " plus or minus ",
  "–": "-",
  "—": "-",
  "‐": "-",
  "‑": "-",
  "−": "-",
  "‘": "'",
  "’": "'",
  ʼ: "'",
  "“": '"',
  "”": '"',
  "„": '"',
  "«": '"',
  "»": '"',
  "…": "...",
  "،": ",",
  "؛": ";",
  "؟": "?",
  "。": ".",
  "、": ",",
  "，": ",",
  "！": "!",
  "？": "?",
  "।": ".",
};

const letters: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  ł: "l",
  đ: "d",
  ð: "d",
  þ: "th",
  ı: "i",
  ħ: "h",
  ŋ: "ng",
  ...pairs("абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґ", [
    ..."a b v g d e zh z i y k l m n o p r s t u f kh ts ch sh shch".split(" "),
    "",
    "y",
    "",
    ..."e yu ya i yi ye g".split(" "),
  ]),
  ...pairs("αβγδεζηθικλμνξοπρσςτυφχψω", "a v g d e z i th i k l m n x o p r s s t y f ch ps o".split(" ")),
};

function pairs(from: string, to: readonly string[]): Record<string, string> {
  return Object.fromEntries([...from].map((letter, index) => [letter, to[index] ?? ""]));
}

const plainAscii = /^[\x20-\x7e]*$/;

export function toAscii(text: string): string {
  if (plainAscii.test(text)) return text;
  let out = "";
  for (const character of text) out += asciiOf(character);
  return out.replace(/ {2,}/g, " ").trim();
}

function asciiOf(character: string): string {
  if (plainAscii.test(character)) return character;
  const symbol = symbols[character];
  if (symbol !== undefined) return symbol;
  let out = "";
  for (const part of character.normalize("NFKD")) {
    if (plainAscii.test(part)) out += part;
    else {
      const lower = part.toLowerCase();
      const letter = letters[lower] ?? "";
      out += lower === part ? letter : letter.charAt(0).toUpperCase() + letter.slice(1);
    }
  }
  return out;
}
