/** Formats a Kubernetes `MicroTime`. The API server requires exactly six decimals. */
export function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace("Z", "000Z");
}
