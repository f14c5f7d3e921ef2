import { UsageError } from "../../../lib/usage-error.ts";
import { type Environment, readers } from "./environment.ts";

const providers = ["cpu", "cuda"];

/**
 * ONNX Runtime's execution providers in order of preference, from a variable such as `cuda,cpu`; default: `cpu`.
 * @throws UsageError
 */
export function readProviders(environment: Environment, name: string): string[] {
  const listed = (readers(environment).text(name) ?? "cpu").split(",").map((provider) => provider.trim());
  const unknown = listed.find((provider) => !providers.includes(provider));
  if (unknown === undefined) return listed;
  throw new UsageError(
    `${name} must list ${providers.join(", ")} separated by commas; it has ${JSON.stringify(unknown)}.`,
  );
}
