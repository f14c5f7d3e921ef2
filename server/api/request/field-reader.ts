import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { Failure, type FieldError } from "../../contract/errors.ts";
import { describe } from "./fields.ts";

/** Reads the fields of a body one by one, and collects the errors of all fields. */
export class FieldReader {
  readonly #body: Readonly<Record<string, unknown>>;
  /** The names of the fields with text to synthesize. No error message may quote these fields. */
  readonly #spoken: readonly string[];
  readonly #errors: FieldError[] = [];

  /**
   * Creates a reader.
   * @param spoken the names of the fields with text to synthesize.
   * @throws Failure `invalid_request` if the body is not an object.
   */
  constructor(body: unknown, spoken: readonly string[]) {
    if (typeof body !== "object" || body === null || Array.isArray(body)) {
      throw new Failure("invalid_request", "The body must be a JSON object.", {
        fields: [{ pointer: "", detail: "must be a JSON object" }],
      });
    }
    this.#body = body as Readonly<Record<string, unknown>>;
    this.#spoken = spoken;
  }

  /** Returns the value of the field, or undefined if the value is absent, null or invalid. */
  read<Type>(name: string, schema: TSchema): Type | undefined {
    const value = Object.hasOwn(this.#body, name) ? this.#body[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (Value.Check(schema, value)) return value as Type;
    const shown = this.#spoken.includes(name) ? kindOf(value) : formatValue(value);
    this.refuse(name, `must be ${describe(schema)}, not ${shown}`);
    return undefined;
  }

  readRequired<Type>(name: string, schema: TSchema): Type | undefined {
    const value = this.read<Type>(name, schema);
    if (value === undefined && !this.isWrong(name)) this.refuse(name, `is required: ${describe(schema)}`);
    return value;
  }

  refuse(name: string, detail: string): void {
    this.#errors.push({ pointer: `/${name}`, detail });
  }

  isWrong(name: string): boolean {
    return this.#errors.some((error) => error.pointer === `/${name}`);
  }

  /** Ends the validation. @throws Failure `invalid_request` with all errors so far. */
  finish(): void {
    const [first] = this.#errors;
    if (!first) return;
    throw new Failure("invalid_request", `${first.pointer.slice(1)} ${first.detail}.`, {
      fields: this.#errors,
    });
  }
}

/** Describes a value with text to synthesize, without quoting the text. */
function kindOf(value: unknown): string {
  if (value === "") return "an empty string";
  if (typeof value === "string") return "this text";
  return typeof value === "object" ? formatValue(value) : `a ${typeof value}`;
}

/** Formats a value for an error message, in at most 61 characters. */
export function formatValue(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "number" && !Number.isFinite(value)) return "a number that is too large";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
