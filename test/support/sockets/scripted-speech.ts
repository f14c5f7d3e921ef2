import type { Call } from "../server/scripted-model.ts";

/** The sampling rate of scripted speech in Hz. */
export const scriptedRate = 8000;
/** The length of the audio of every scripted synthesis in seconds. */
export const scriptedSeconds = 0.3;

/** Sends a tone, with word timestamps that distribute the words of the text over it. */
export async function speakWords(call: Call): Promise<void> {
  const words = call.invocation.text.split(" ");
  await call.head(scriptedRate);
  const each = scriptedSeconds / words.length;
  const times = words.map((word, at) => ({ word, start: at * each, end: (at + 1) * each }));
  await call.send({ kind: "words", words: times });
  await call.tone(scriptedRate * scriptedSeconds, scriptedRate);
  await call.end(scriptedRate * scriptedSeconds);
}

/** Sends some audio, and then waits until the client disconnects. */
export async function speakAndWait(call: Call): Promise<void> {
  await call.head(scriptedRate);
  await call.send({
    kind: "words",
    words: [
      { word: "first", start: 0, end: 0.1 },
      { word: "second", start: 0.1, end: 0.9 },
    ],
  });
  await call.tone(scriptedRate / 5, scriptedRate);
  await call.aborted;
}
