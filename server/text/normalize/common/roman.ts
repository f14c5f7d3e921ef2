const canonical = /^M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$/u;
const values: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

/** Returns the value of a Roman numeral, or undefined if the text is not a correct numeral. */
export function readRoman(text: string): number | undefined {
  if (text === "" || !canonical.test(text)) return undefined;
  let sum = 0;
  let last = 1000;
  for (const letter of text) {
    const value = values[letter] ?? 0;
    sum += value > last ? value - 2 * last : value;
    last = value;
  }
  return sum;
}
