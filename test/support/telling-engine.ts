/** An engine whose audio is the number that it was started with: once, or without end where it is told `on`. */
import { setTimeout as sleep } from "node:timers/promises";
import { serveJobs } from "../../server/engine/serve-jobs.ts";

const piece = new Int16Array(800).fill(Number(process.argv[2]));
await serveJobs(async ({ tokens }, sink) => {
  while (sink.audio(piece, 8_000) && tokens[0]?.text === "on") await sleep(5);
});
