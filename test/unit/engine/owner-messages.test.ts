import { spawn } from "node:child_process";
import type { Duplex, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { Message } from "../../../server/contract/framing.ts";
import {
  engineSocket,
  idMessage,
  jsonMessage,
  messageSplitter,
  messageTypes,
} from "../../../server/engine/runtime/protocol.ts";

const file = fileURLToPath(new URL("../../support/engine-programs/main.ts", import.meta.url));
const utterance = {
  ...{ voice: { kind: "neural", speaker: 0 }, stretch: 1 },
  tokens: [{ text: "on", before: "", after: "", stretch: 1 }],
};

/** Starts the engine `gated`, and stops its job while the engine waits after its second piece. */
async function stopInTheMiddle(argument: string): Promise<Message[]> {
  const child = spawn(process.execPath, [file, "gated", argument], {
    stdio: ["pipe", "ignore", "inherit", "pipe"],
  });
  const socket = child.stdio[engineSocket] as Duplex;
  const gate = child.stdin as Writable;
  const splitter = messageSplitter();
  const received: Message[] = [];
  socket.write(jsonMessage(messageTypes.speak, { id: 1, utterance }));
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    for (const message of splitter.push(bytes)) {
      received.push(message);
      const hasEnded = message.type === messageTypes.done || message.type === messageTypes.failed;
      // The engine has begun the job, and cannot pass its second piece before the stop is in its socket.
      if (message.type === messageTypes.begun)
        socket.write(idMessage(messageTypes.stop, 1), () => gate.write("."));
      if (hasEnded) socket.end();
    }
  }
  return received;
}

it("an engine process in the middle of a long text stops before the next piece", async () => {
  const types = (await stopInTheMiddle("")).map(({ type }) => type);
  const pieces = types.filter((type) => type === messageTypes.audio);
  expect(pieces.length, "the stop may arrive before the second piece").toBeLessThanOrEqual(2);
  expect(types.at(-1)).toBe(messageTypes.done);
});

it("an engine whose audio is stretched afterwards also stops before the next piece", async () => {
  const received = await stopInTheMiddle("stretched");
  expect(received.map(({ type }) => type)).toEqual([
    messageTypes.ready,
    messageTypes.begun,
    messageTypes.done,
  ]);
});
