import type { Failure } from "../../contract/errors.ts";

/**
 * An error in the format that OpenAI's clients read. A problem document contains the error in the field
 * `error`.
 */
export interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly code: string;
  /** The name of the first invalid field, or null if the error concerns no field. */
  readonly param: string | null;
}

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

export function toOpenaiError({ message, status, code, fields }: Failure): OpenaiError {
  const type = types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  return { message, type, code, param: fields[0]?.pointer.slice(1) || null };
}
