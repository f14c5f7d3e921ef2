import { type Aliases, defaultAliases } from "./aliases.ts";

/** What `clear` discards: with `abort` everything, with `buffer` only text that was not committed. */
export const clearModes = ["abort", "buffer"] as const;
export type ClearMode = (typeof clearModes)[number];

/** What an administrator may choose for all sockets. */
export interface SocketOptions {
  readonly aliases: Aliases;
  readonly clearMode: ClearMode;
  /** Sockets that one key may have open at this process. */
  readonly perKey: number;
  /** Sockets that one key may open here in a second. */
  readonly newPerSecond: number;
}

export const defaultSocketOptions: SocketOptions = {
  aliases: defaultAliases,
  clearMode: "abort",
  perKey: 1000,
  newPerSecond: 100,
};
