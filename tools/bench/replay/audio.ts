/** Sampling rate in Hz of the replayed audio, as of neural models. */
export const replayRate = 24_000;

/**
 * Voiced sound with syllables, the same in every call: an encoder has the same work as with speech.
 * @param seconds of audio.
 */
export function cannedAudio(seconds: number): Int16Array {
  const harmonics = [1, 2, 3, 5, 8, 13, 21];
  return Int16Array.from({ length: Math.round(seconds * replayRate) }, (_, i) => {
    const time = i / replayRate;
    const pitch = 120 + 20 * Math.sin(2 * Math.PI * 0.7 * time);
    const loudness = 0.5 + 0.5 * Math.sin(2 * Math.PI * 4 * time);
    const voiced = harmonics.reduce((sum, n) => sum + Math.sin(2 * Math.PI * n * pitch * time) / n, 0);
    const breath = Math.sin(12.9898 * i) * 43_758.5453; // the fraction serves as noise
    return Math.round(loudness * (4000 * voiced + 800 * (breath - Math.floor(breath) - 0.5)));
  });
}

/** How a replayed model synthesizes, as written in the text of the request. */
export function replayText(seconds: number, pace: "in time" | "at once"): string {
  return `${seconds} seconds ${pace}`;
}

export function readReplayText(text: string): { seconds: number; inTime: boolean } {
  const [, seconds, pace] = /^(\d+) seconds (in time|at once)$/.exec(text) ?? [];
  if (seconds === undefined) throw new Error("a replayed model is asked for as `10 seconds in time`");
  return { seconds: Number(seconds), inTime: pace === "in time" };
}
