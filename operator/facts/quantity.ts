const decimal: Record<string, bigint> = {
  n: 1n,
  u: 1_000n,
  m: 1_000_000n,
  "": 10n ** 9n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  G: 10n ** 18n,
  T: 10n ** 21n,
  P: 10n ** 24n,
  E: 10n ** 27n,
};
const binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const form = /^([+-]?)(\d{0,30})(?:\.(\d{0,30}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;

/**
 * Returns a Kubernetes quantity (`500m`, `1.5Gi`, `2e3`) in billionths, or `undefined` if the value is not a
 * quantity.
 */
export function nanosOf(quantity: unknown): bigint | undefined {
  const match = form.exec(String(quantity));
  if (match === null || (match[2] === "" && (match[3] ?? "") === "")) return undefined;
  const [, sign, whole = "", fraction = "", suffix = "", exponent = "0"] = match;
  const scale = scaleOf(suffix) * 10n ** BigInt(Math.max(0, Number(exponent)));
  const divisor = 10n ** BigInt(fraction.length + Math.max(0, -Number(exponent)));
  const nanos = BigInt(whole + fraction) * scale;
  // Like the API server, the function rounds up to billionths.
  const rounded = (nanos + divisor - 1n) / divisor;
  return sign === "-" ? -rounded : rounded;
}

function scaleOf(suffix: string): bigint {
  const power = binary.indexOf(suffix);
  return power === -1 ? (decimal[suffix] ?? 0n) : 10n ** 9n * 1024n ** BigInt(power + 1);
}
