/**
 * The windows of a line. A graph that synthesizes a line in windows returns the first audio before it has
 * computed the whole line (ADR 24). All positions are in frames of the generator.
 */
export interface Window {
  /** The range of frames whose audio is used. */
  readonly from: number;
  readonly to: number;
  /** The range of frames that the generator computes. Its convolutions need the neighbours of a frame. */
  readonly computedFrom: number;
  readonly computedTo: number;
}

/** The number of samples of one frame. */
export const frameSamples = 300;
/** The length of the first window: 0.4 seconds. */
const firstFrames = 32;
/**
 * The ratio between the lengths of a window and the window before it. A window is computed while the previous
 * window plays, so the ratio must be below the speed of the generator.
 */
const growth = 1.5;
/**
 * The number of frames before and after a window. With 8 frames the difference from a whole line was not
 * smaller (docs/evidence/first-audio.md).
 */
const contextFrames = 4;
/** A shorter rest becomes part of the previous window. */
const leastFrames = 16;

/** The audio that is needed from a line, in samples. */
export interface AudioRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Divides a line into windows.
 * @param range the needed samples. The windows contain at least these samples.
 * @param frames the number of frames of the line.
 */
export function windowsOf({ from, to }: AudioRange, frames: number): Window[] {
  const end = Math.min(frames, Math.ceil(to / frameSamples));
  const windows: Window[] = [];
  let length = firstFrames;
  for (let at = Math.max(0, Math.min(Math.floor(from / frameSamples), end - 1)); at < end; ) {
    const next = end - (at + length) < leastFrames ? end : at + length;
    windows.push({
      from: at,
      to: next,
      computedFrom: Math.max(0, at - contextFrames),
      computedTo: Math.min(frames, next + contextFrames),
    });
    at = next;
    length = Math.round(length * growth);
  }
  return windows;
}
