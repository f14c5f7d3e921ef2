import { env as names } from "../../../config/contract/names.ts";

/** Raises the limits of sockets for each key above the numbers of the measurements. */
export const openLimits = { [names.keySockets]: "100000", [names.keySocketsPerSecond]: "100000" };
