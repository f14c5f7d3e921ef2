import type { Failure } from "../../../contract/errors.ts";

/** The kinds of errors that published clients know. */
export type ErrorKind =
  | "invalid_input"
  | "unauthenticated"
  | "permission_denied"
  | "not_found"
  | "resource_exhausted"
  | "timeout"
  | "unavailable"
  | "internal";

const kinds: ReadonlyMap<number, ErrorKind> = new Map([
  [401, "unauthenticated"],
  [403, "permission_denied"],
  [404, "not_found"],
  [408, "timeout"],
  [429, "resource_exhausted"],
  [503, "unavailable"],
  [504, "timeout"],
]);
const firstServerError = 500;

export function errorKindOf({ code, status }: Failure): ErrorKind {
  if (code === "saturated" || code === "overloaded") return "resource_exhausted";
  return kinds.get(status) ?? (status < firstServerError ? "invalid_input" : "internal");
}
