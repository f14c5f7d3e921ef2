/** Kubernetes' `MicroTime`: exactly six decimals, else the API server refuses it. */
export function microTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace("Z", "000Z");
}
