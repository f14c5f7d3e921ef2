/** RFC 3339 without fractions, as `metav1.Time` is written. */
export function isoSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
