import { UsageError } from "../../../lib/usage-error.ts";
import { type Environment, readers } from "./environment.ts";

const providers = ["cpu", "cuda"];

/**
 * Reads ONNX Runtime's execution providers in order of preference, for example `cuda,cpu`. The default is
 * `cpu`.
 * @throws UsageError with the variable and the unknown provider.
 */
export function readProviders(environment: Environment, name: string): string[] {
  const listed = (readers(environment).text(name) ?? "cpu").split(",").map((provider) => provider.trim());
  const unknown = listed.find((provider) => !providers.includes(provider));
  if (unknown === undefined) return listed;
  throw new UsageError(
    `${name} must list ${providers.join(", ")} separated by commas; it contains ${JSON.stringify(unknown)}.`,
  );
}
