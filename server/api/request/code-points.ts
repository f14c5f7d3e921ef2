/**
 * Counts the Unicode code points of a text. The limits of texts and sentences use this count. The limit of text
 * that waits for synthesis counts UTF-16 units, because it bounds memory.
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
