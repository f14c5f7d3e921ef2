declare module "nspell" {
  interface Speller {
    correct(word: string): boolean;
  }
  /** Reads a Hunspell dictionary: its affixes and its words. */
  export default function nspell(aff: Uint8Array, dic: Uint8Array): Speller;
}
