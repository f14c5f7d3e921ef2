import { type Aliases, defaultAliases } from "./aliases.ts";

/** The scope of `clear`: `abort` discards everything, `buffer` only text that was not committed. */
export const clearModes = ["abort", "buffer"] as const;
export type ClearMode = (typeof clearModes)[number];

/** Settings of an administrator for all sockets. */
export interface SocketOptions {
  readonly aliases: Aliases;
  readonly clearMode: ClearMode;
  /** Sockets that one key may have open in this process. */
  readonly perKey: number;
  /** Sockets that one key may open in this process per second. */
  readonly newPerSecond: number;
}

export const defaultSocketOptions: SocketOptions = {
  aliases: defaultAliases,
  clearMode: "abort",
  perKey: 1000,
  newPerSecond: 100,
};
