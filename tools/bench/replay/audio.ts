/** The sampling rate of the replayed audio in Hz, which is common for neural models. */
export const replayRate = 24_000;

/**
 * Returns a voiced sound with syllables, which is the same in every call. An encoder needs the same work for
 * this sound as for speech.
 */
export function cannedAudio(seconds: number): Int16Array {
  const harmonics = [1, 2, 3, 5, 8, 13, 21];
  return Int16Array.from({ length: Math.round(seconds * replayRate) }, (_, i) => {
    const time = i / replayRate;
    const pitch = 120 + 20 * Math.sin(2 * Math.PI * 0.7 * time);
    const loudness = 0.5 + 0.5 * Math.sin(2 * Math.PI * 4 * time);
    const voiced = harmonics.reduce((sum, n) => sum + Math.sin(2 * Math.PI * n * pitch * time) / n, 0);
    const breath = Math.sin(12.9898 * i) * 43_758.5453; // The fraction of this number serves as noise.
    return Math.round(loudness * (4000 * voiced + 800 * (breath - Math.floor(breath) - 0.5)));
  });
}

/**
 * Returns the text of a request. The text states the length and the pace of the audio for the replayed model.
 */
export function replayText(seconds: number, pace: "in time" | "at once"): string {
  return `${seconds} seconds ${pace}`;
}

export function readReplayText(text: string): { seconds: number; inTime: boolean } {
  const [, seconds, pace] = /^(\d+) seconds (in time|at once)$/.exec(text) ?? [];
  if (seconds === undefined)
    throw new Error(
      `the text is ${JSON.stringify(text.slice(0, 80))}; a replayed model expects a text like "10 seconds in time"`,
    );
  return { seconds: Number(seconds), inTime: pace === "in time" };
}
