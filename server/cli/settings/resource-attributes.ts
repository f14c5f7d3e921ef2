import { otelEnv as names } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";

/**
 * Reads `OTEL_RESOURCE_ATTRIBUTES`: `name=value,name=value` with percent-encoded values (W3C Baggage without
 * properties).
 * @throws UsageError with the invalid pair.
 */
export function readAttributes(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(pairs.map(readAttribute));
}

function readAttribute(pair: string): [name: string, value: string] {
  const [name = "", ...value] = pair.split("=");
  try {
    if (name.trim() === "" || value.length === 0) throw new Error("the name or the value is missing");
    return [name.trim(), decodeURIComponent(value.join("=").trim())];
  } catch (cause) {
    throw new UsageError(
      `${names.resourceAttributes} must be name=value pairs separated by commas; ${JSON.stringify(pair)} is not a valid pair.`,
      { cause },
    );
  }
}
