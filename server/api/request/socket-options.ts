import { type Aliases, defaultAliases } from "./aliases.ts";

/** Values of the scope of `clear`: `abort` discards everything, `buffer` only text that is not committed yet. */
export const clearModes = ["abort", "buffer"] as const;
export type ClearMode = (typeof clearModes)[number];

/** Settings of all WebSockets. */
export interface SocketOptions {
  readonly aliases: Aliases;
  readonly clearMode: ClearMode;
  /** Highest number of open sockets of one API key in this process. */
  readonly perKey: number;
  /** Highest number of new sockets per second of one API key in this process. */
  readonly newPerSecond: number;
}

export const defaultSocketOptions: SocketOptions = {
  aliases: defaultAliases,
  clearMode: "abort",
  perKey: 1000,
  newPerSecond: 100,
};
