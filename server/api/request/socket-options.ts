import { type Aliases, defaultAliases } from "./aliases.ts";

/**
 * The effects of `clear`: `abort` discards all text and stops the synthesis, and `buffer` discards only text
 * that is not committed yet.
 */
export const clearModes = ["abort", "buffer"] as const;
export type ClearMode = (typeof clearModes)[number];

/** The settings of all WebSockets. */
export interface SocketOptions {
  readonly aliases: Aliases;
  readonly clearMode: ClearMode;
  /** The highest number of open sockets of one API key in this process. */
  readonly perKey: number;
  /** The highest number of new sockets per second of one API key in this process. */
  readonly newPerSecond: number;
}

export const defaultSocketOptions: SocketOptions = {
  aliases: defaultAliases,
  clearMode: "abort",
  perKey: 1000,
  newPerSecond: 100,
};
