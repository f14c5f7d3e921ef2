import { dictionary } from "cmu-pronouncing-dictionary";
import { seededRandom } from "../../server/engine/arcana/random.ts";

const words = {
  noun: `time person year way day thing man world life hand part child eye woman place work week case point company number group problem
    fact river mountain city garden window music winter summer orange silver coffee market station doctor teacher student morning evening
    question answer reason version vision voice choice boy oil joy church judge bridge measure brother father mother weather animal hospital
    language image message package house street school letter friend water train office door story sea bread cheese truck field ball kitchen
    meeting bank book table room farmer horse sheep family month end front class page coat night lunch sun dog engine paper table phone minute
    hour money country state king queen girl sister uncle village island ocean beach road corner wall floor roof chair bed lamp mirror clock
    shirt shoe hat bag box bottle glass cup plate knife fork spoon apple lemon berry cake sugar salt pepper soup meat fish egg milk wine beer
    tree leaf flower grass stone sand fire smoke cloud rain snow wind storm star moon sky bird cat cow pig mouse wolf bear lion tiger snake
    head face nose mouth tooth neck shoulder arm finger leg knee foot heart bone skin blood nurse lawyer painter writer singer pilot driver
    soldier captain guide guest owner member leader player team game prize song dance play film picture color sound noise silence secret
    idea plan rule law tax price bill job task tool machine wheel wire nail rope chain key lock gate yard farm barn fence path hill valley lake
    thought truth youth length strength height speech touch watch match branch bench edge badge cage age stage page garage usage television
    pleasure treasure decision occasion confusion division pressure nation station position condition addition attention information`,
  verb: `come go see know take find give tell work call try ask need feel leave put mean keep let begin help talk turn start show hear play run
    move live believe hold bring happen write provide sit stand lose pay meet include continue set learn change lead understand watch follow
    stop create speak read allow add spend grow open walk win offer remember love consider appear buy wait serve send expect build stay fall
    cut reach kill remain choose join visit close drive break catch teach draw throw fly sing swim drink eat sleep dream laugh smile cry push
    pull carry lift drop fix paint wash clean cook bake share save count check choose judge change arrange imagine manage enjoy destroy`,
  past: `came went saw knew took found gave told worked called tried asked needed felt left kept began helped talked turned started showed
    heard played ran moved lived held brought wrote sat stood lost paid met learned changed led watched followed stopped spoke read added
    spent grew opened walked won offered loved bought waited served sent built stayed fell cut reached chose joined visited closed drove broke
    caught taught drew threw flew sang swam drank ate slept laughed smiled pushed pulled carried lifted dropped fixed painted washed cleaned`,
  adjective: `good new first last long great little own other old right big high different small large next early young important public bad
    same able yellow purple green blue red black white happy sorry ready empty heavy simple double possible cold warm hot cool wet dry soft hard
    strong weak rich poor clean dirty bright dark quick slow loud quiet cheap thin thick wide narrow deep shallow fresh strange foreign common
    rough smooth sharp round square low tall short broad huge tiny gentle nervous curious precious ancient modern golden wooden broken hidden`,
  adverb: `quickly slowly loudly quietly always never often maybe perhaps again here there now then soon already almost together away usually
    sometimes today tomorrow yesterday tonight early late well badly hardly nearly really finally suddenly everywhere nothing something`,
  determiner: `the the the the a a my your his her our their this that these those every each some any no another one two three four five six
    seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand`,
  pronoun: `I you he she it we they who everyone nobody somebody this that`,
  preposition: `in on at by for with from to into onto of over under about after before through during without across near behind between
    against around among along beside beyond inside outside until toward since like`,
  auxiliary: `will would can could should must may might did does do is was were are has had have`,
  link: `and but or because when while if so although that which where as than unless`,
  opening: `well yes no please okay thanks however yesterday sometimes today sure`,
} as const;

type Kind = keyof typeof words;
const lists = Object.fromEntries(
  Object.entries(words).map(([kind, list]) => [kind, list.split(/\s+/u)]),
) as unknown as Readonly<Record<Kind, readonly string[]>>;

const patterns: readonly (readonly Kind[])[] = [
  ["determiner", "noun", "past", "determiner", "adjective", "noun"],
  ["pronoun", "past", "determiner", "noun", "preposition", "determiner", "noun"],
  ["determiner", "adjective", "noun", "past", "preposition", "determiner", "noun"],
  ["pronoun", "auxiliary", "verb", "determiner", "noun"],
  ["pronoun", "auxiliary", "verb", "adverb"],
  ["verb", "determiner", "noun", "preposition", "determiner", "adjective", "noun"],
  ["auxiliary", "pronoun", "verb", "determiner", "noun"],
  ["preposition", "determiner", "noun", "pronoun", "past", "adverb"],
  ["noun", "preposition", "noun"],
  ["determiner", "noun", "auxiliary", "adjective"],
  ["opening", "pronoun", "past", "adverb"],
  ["adjective", "noun", "adverb", "past", "noun"],
];
const markShares = [
  [".", 0.6],
  ["?", 0.72],
  ["!", 0.8],
  [",", 0.93],
  ["", 1],
] as const;
/**
 * The share of content words that are random words of the dictionary, so that every pair of sounds occurs.
 */
const dictionaryShare = 0.4;
const mostWords = 24;

export interface CorpusWord {
  readonly text: string;
  readonly mark: string;
}

/** Yields random sentences without meaning. The sentences have the melody and the sounds of English. */
export function* sentences(seed: number): Generator<readonly CorpusWord[]> {
  const random = seededRandom(seed);
  const any = Object.keys(dictionary).filter((word) => /^[a-z]{3,11}$/u.test(word));
  const pick = <Item>(list: readonly Item[]): Item => list[Math.floor(random() * list.length)] as Item;
  const word = (kind: Kind) =>
    ["noun", "verb", "adjective"].includes(kind) && random() < dictionaryShare
      ? pick(any)
      : pick(lists[kind]);
  while (true) {
    const clauses = 1 + Math.floor(random() * 3);
    const spoken: CorpusWord[] = [];
    for (let clause = 0; clause < clauses; clause++) {
      if (clause > 0) spoken.push({ text: word("link"), mark: "" });
      spoken.push(...pick(patterns).map((kind) => ({ text: word(kind), mark: "" })));
      const comma = clause + 1 < clauses && random() < 0.4;
      if (comma) spoken.push({ text: (spoken.pop() as CorpusWord).text, mark: "," });
    }
    if (random() < 0.06) spoken.splice(1 + Math.floor(random() * 2));
    const draw = random();
    const mark = markShares.find(([, upTo]) => draw < upTo)?.[0] ?? "";
    yield [...spoken.slice(0, -1), { text: (spoken.at(-1) as CorpusWord).text, mark }].slice(0, mostWords);
  }
}

/** Returns whether the sentence shares four consecutive words with one of the evaluation sentences. */
export function sharesWords(spoken: readonly CorpusWord[], heldOut: ReadonlySet<string>): boolean {
  const texts = spoken.map(({ text }) => text.toLowerCase());
  return texts.some((_, i) => i + 4 <= texts.length && heldOut.has(texts.slice(i, i + 4).join(" ")));
}

export function runsOfFour(lines: readonly string[]): Set<string> {
  const runs = new Set<string>();
  for (const line of lines) {
    const texts = line
      .toLowerCase()
      .replace(/[^a-z' ]/gu, "")
      .split(" ");
    for (let i = 0; i + 4 <= texts.length; i++) runs.add(texts.slice(i, i + 4).join(" "));
  }
  return runs;
}
