/**
 * Counts the characters of a text. All limits of texts use this count, in which a surrogate pair is one
 * character.
 */
export function countCodePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if (isHighSurrogate(text, i) && isLowSurrogate(text, i + 1)) count--;
  return count;
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function isLowSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
