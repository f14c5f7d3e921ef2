/**
 * Starts an API tier with a client that reads no data, uses up all file descriptors for a minute of the tier's clock,
 * and frees them again. Prints the messages that the tier logged without free descriptors and afterwards, and
 * whether the client was disconnected, as JSON. The tier must not crash.
 */
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { PassThrough } from "node:stream";
import { eventually } from "../eventually.ts";
import { FakeClock } from "../fake-clock.ts";
import { rawSpeech, startTestApi } from "../server/api-tier.ts";
import { speakOn, startScriptedModel } from "../server/scripted-model.ts";

const stallMs = 1_000;

function openAllDescriptors(): number[] {
  const descriptors: number[] = [];
  try {
    for (;;) descriptors.push(openSync("/dev/null", "r"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    return descriptors;
  }
}

const clock = new FakeClock();
const logTo = new PassThrough();
const logged: string[] = [];
logTo.on("data", (line: Buffer) => logged.push((JSON.parse(line.toString()) as { msg: string }).msg));
const model = await startScriptedModel(speakOn());
const settings = { logLevel: "info", limits: { stallMs } } as const;
const api = await startTestApi(model.url, settings, { clock, logTo });
const { hostname, port } = new URL(api.url);
const body = { modelId: "arcana", speaker: "luna", text: "Hello." };
const client = connect(Number(port), hostname, () => client.write(rawSpeech(api, body, "audio/pcm")));
client.pause().on("error", () => undefined);
await eventually("a stream that waits for its client", () => model.calls[0]?.isHeldUp === true);
const call = model.calls[0];
let isDisconnected = false;
void call?.aborted.then(() => {
  isDisconnected = true;
});

const step = () => clock.advance(stallMs / 4);
const messages = () => logged.splice(0);

const descriptors = openAllDescriptors();
messages();
for (let passedMs = 0; passedMs < 60_000; passedMs += stallMs / 4) await step();
const without = { messages: messages(), isDisconnected };
for (const descriptor of descriptors) closeSync(descriptor);
await eventually("the end of the stream", async () => {
  await step();
  return isDisconnected;
});
const afterwards = { messages: messages(), isDisconnected };
const { status } = await fetch(`${api.url}/livez`);
client.destroy();
await api.stop();
await model.close();
process.stdout.write(JSON.stringify({ without, afterwards, status }));
