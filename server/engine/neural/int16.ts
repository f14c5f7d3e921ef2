/**
 * Samples of -1 to 1 as 16 bits; louder ones are cut off, what is no number is silence.
 *
 * Rounds without a branch, which noise would mispredict: `Math.round` takes four times as long, `Int16Array.from` forty.
 */
export function toInt16(audio: Float32Array): Int16Array {
  const samples = new Int16Array(audio.length);
  for (let i = 0; i < audio.length; i++) {
    const value = Math.max(-1, Math.min(1, audio[i] ?? 0)) * 32_767;
    samples[i] = (value + 65_536.5) | 0; // above zero, where cutting off is rounding down; storing takes the 65,536 away
  }
  return samples;
}
