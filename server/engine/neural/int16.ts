/**
 * Converts samples from -1 to 1 into 16-bit integers. Louder samples are clipped, and NaN becomes silence.
 * The rounding uses no branch, because noise would cause branch mispredictions: `Math.round` takes four times
 * as long, and `Int16Array.from` forty times.
 */
export function toInt16(audio: Float32Array): Int16Array {
  const samples = new Int16Array(audio.length);
  for (let i = 0; i < audio.length; i++) {
    const value = Math.max(-1, Math.min(1, audio[i] ?? 0)) * 32_767;
    // The offset makes the value positive, so truncation rounds down. The 16-bit array drops the offset.
    samples[i] = (value + 65_536.5) | 0;
  }
  return samples;
}
