import { UsageError } from "../../../lib/usage-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Creates functions that read variables. An invalid value causes a `UsageError` with the variable, its value
 * and the allowed values.
 */
export function readers(environment: Environment) {
  /** Reads a text. An empty variable counts as unset, because Kubernetes and shells may set empty variables. */
  const text = (name: string): string | undefined => environment[name] || undefined;
  const optionalInteger = (name: string, from: number, to: number): number | undefined => {
    const given = text(name);
    if (given === undefined) return undefined;
    const value = Number(given);
    if (Number.isInteger(value) && value >= from && value <= to) return value;
    throw new UsageError(`${name} must be an integer from ${from} to ${to}; it is ${JSON.stringify(given)}.`);
  };
  return {
    text,
    optionalInteger,
    integer: (name: string, fallback: number, from: number, to: number): number =>
      optionalInteger(name, from, to) ?? fallback,
    oneOf<Value extends string>(name: string, allowed: readonly Value[], fallback: NoInfer<Value>): Value {
      const given = text(name) ?? fallback;
      const known = allowed.find((value) => value === given);
      if (known !== undefined) return known;
      throw new UsageError(`${name} must be one of ${allowed.join(", ")}; it is ${JSON.stringify(given)}.`);
    },
  };
}
