/**
 * `make agent-loop` runs a voice agent with a scripted language model over `/ws3` and v1. The user interrupts
 * the first reply after two seconds, and hears the whole second reply. The program prints the written text of
 * each turn, and the text that a speech recognizer found in the audio.
 */
import { startServer } from "../bench/common/running-server.ts";
import { converse } from "./agent.ts";
import { openContextSocket, openTextSocket } from "./agent-socket.ts";
import { conversation } from "./script.ts";
import { recognizeTurns, renderConversation } from "./transcript.ts";

const pace = { tokensPerSecond: 30, speed: 1 };
const protocols = [
  { name: "/ws3", open: openTextSocket },
  { name: "v1", open: openContextSocket },
];

const server = await startServer();
const pages: string[] = [];
try {
  for (const { name, open } of protocols) {
    const socket = await open({ url: server.url, key: server.key, model: "mist", speaker: "alan" });
    const turns = await converse(socket, conversation, pace);
    socket.close();
    pages.push(renderConversation(name, await recognizeTurns(turns)));
  }
} finally {
  await server.stop();
}
console.log(pages.join("\n\n"));
