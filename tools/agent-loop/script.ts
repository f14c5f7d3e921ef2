/** One reply of the scripted language model. */
export interface Reply {
  readonly text: string;
  /**
   * The seconds of played audio after which the user interrupts the reply. By default, the user does not
   * interrupt the reply.
   */
  readonly interruptAfterSeconds?: number;
}

const longReply = [
  "The train leaves the station at noon.",
  "It stops at every small town on the way to the coast.",
  "You can buy your ticket from the driver, or at the office next to the river.",
  "The last part of the trip goes along the water, and the view is very good.",
  "Many people take a book with them, because the trip takes most of the day.",
  "In the evening there is a meal, and the cook makes bread and soup.",
  "After that the train waits for an hour, so that you can walk to the old bridge.",
  "The morning train is faster, but it does not stop at the lake.",
].join(" ");

/**
 * A conversation. The user interrupts the first reply while the model still writes the reply, and listens to
 * the whole second reply.
 */
export const conversation: readonly Reply[] = [
  { text: longReply, interruptAfterSeconds: 2 },
  { text: "You can buy a ticket on the train. The next train leaves in the evening." },
];

/** The longest token in characters. A language model divides longer words. */
const longestToken = 6;

/** Returns the tokens of a text. A token may end inside a word, and contains the space before its word. */
export function tokensOf(text: string): string[] {
  return text.match(new RegExp(`\\s*\\S{1,${longestToken}}`, "g")) ?? [];
}
