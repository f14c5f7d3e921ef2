import { expect, test } from "vitest";
import { hasNumbers, type NumberLanguage, numbersOf } from "../../support/audio/spoken-digits.ts";

test.each<[NumberLanguage, string, string]>([
  ["eng", "It costs $9.99 per month.", "It costs nine dollars and ninety-nine cents per month."],
  ["eng", "The address is 192.168.1.1.", "The address is one nine two dot one six eight dot one dot one."],
  ["eng", "It was 1984.", "It was nineteen eighty-four."],
  ["eng", "We meet at 9:00 a.m.", "We meet at nine A M."],
  ["eng", "1,234,567 people", "one million two hundred thirty-four thousand five hundred sixty-seven people"],
  ["eng", "The 21st guest, Henry VIII", "The twenty-first guest, Henry the eighth"],
  ["eng", "The house cost 350,000 euros.", "The house cost three hundred fifty thousand euros."],
  ["deu", "Am 6. Mai 2023 um 8.05 Uhr", "Am sechsten Mai zweitausenddreiundzwanzig um acht Uhr null fünf"],
  ["deu", "Das Haus kostet 350.000 Euro.", "Das Haus kostet dreihundertfünfzigtausend Euro."],
  ["deu", "1.234 Gäste", "eintausendzweihundertvierunddreißig Gäste"],
  ["fra", "Il a 80 ans et 200 000 euros.", "Il a quatre-vingts ans et deux cent mille euros."],
  ["fra", "Le XIXe siècle, en 1984", "Le dix-neuvième siècle, en mille neuf cent quatre-vingt-quatre"],
  ["spa", "21 casas y 2.000.000 euros", "veintiuna casas y dos millones de euros"],
  ["fra", "Environ 50 % ont dit non.", "Environ cinquante pour cent ont dit non."],
  ["fra", "Il y a 31 personnes.", "Il y a trente et une personnes."],
  ["spa", "Tengo 231 páginas.", "Tengo doscientas treinta y una páginas."],
  ["spa", "a las 15:30", "a las quince treinta"],
])("in %s, numbersOf finds the same numbers in %j and %j", (language, digits, words) => {
  expect(numbersOf(digits, language).join("")).toBe(numbersOf(words, language).join(""));
  expect(hasNumbers(digits, words, language)).toBe(true);
});

test.each<[NumberLanguage, string, string]>([
  ["eng", "It was 1985.", "It was nineteen eighty-four."],
  ["eng", "It costs 9 dollars.", "It costs nine dollars and ninety-nine cents."],
  ["deu", "Es sind 53 Gäste.", "Es sind fünfunddreißig Gäste."],
  ["fra", "Il a 60 ans.", "Il a soixante-dix ans."],
  ["spa", "Tiene 60 años.", "Tiene setenta años."],
])("in %s, hasNumbers finds a difference between %j and %j", (language, heard, expected) => {
  expect(hasNumbers(heard, expected, language)).toBe(false);
});
