/** Formats a time as RFC 3339 without fractions of a second, like `metav1.Time`. */
export function isoSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
