import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { Failure, type FieldError } from "../../contract/errors.ts";
import { describe } from "./fields.ts";

/** Reads fields one by one and gathers what is wrong with them. */
export class FieldReader {
  readonly #body: Readonly<Record<string, unknown>>;
  /** Fields that hold what is spoken, which no error repeats. */
  readonly #spoken: readonly string[];
  readonly #errors: FieldError[] = [];

  /**
   * @param spoken names of fields whose values are never repeated.
   * @throws Failure `invalid_request` when the body is no object.
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

  /** The field's value, or undefined when it is absent, null or wrong. */
  read<Type>(name: string, schema: TSchema): Type | undefined {
    const value = Object.hasOwn(this.#body, name) ? this.#body[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (Value.Check(schema, value)) return value as Type;
    const given = this.#spoken.includes(name) ? kindOf(value) : formatValue(value);
    this.refuse(name, `must be ${describe(schema)}, not ${given}`);
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

  /** @throws Failure `invalid_request` with everything that is wrong so far. */
  finish(): void {
    const [first] = this.#errors;
    if (!first) return;
    throw new Failure("invalid_request", `${first.pointer.slice(1)} ${first.detail}.`, {
      fields: this.#errors,
    });
  }
}

/** What may be said of a value that holds what is spoken. */
function kindOf(value: unknown): string {
  if (value === "") return "an empty text";
  if (typeof value === "string") return "this text";
  return typeof value === "object" ? formatValue(value) : `a ${typeof value}`;
}

/** A value as an error may repeat it: short, and never the text to speak. */
export function formatValue(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "number" && !Number.isFinite(value)) return "a number too large to hold";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
