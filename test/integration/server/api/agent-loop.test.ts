/** Tests the voice agent of `make agent-loop` with the real engines, at ten times the speed of speech. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { converse } from "../../../../tools/agent-loop/agent.ts";
import { openContextSocket, openTextSocket } from "../../../../tools/agent-loop/agent-socket.ts";
import { conversation } from "../../../../tools/agent-loop/script.ts";
import {
  type HeardTurn,
  recognizeTurns,
  renderConversation,
} from "../../../../tools/agent-loop/transcript.ts";
import { type SpeakingServer, startSpeakingServer } from "../../../support/server/whole-server.ts";

const pace = { tokensPerSecond: 30, speed: 10 };
const [interrupted, whole] = conversation;

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

/** The words of a text, without punctuation. */
const wordsIn = (text: string) => text.toLowerCase().match(/[a-z']+/g) ?? [];
const wordsOf = ({ words }: HeardTurn) => words.flatMap(({ word }) => wordsIn(word));

describe.each([
  ["/ws3", openTextSocket],
  ["v1", openContextSocket],
] as const)("an agent on %s", (protocol, open) => {
  it("is interrupted, and its next reply is heard as it was written, with exact word times", async () => {
    const { url, key } = server.api;
    const socket = await open({ url, key, model: "mist", speaker: "alan" });
    const turns = await recognizeTurns(await converse(socket, conversation, pace));
    socket.close();
    const [first, second] = turns;
    if (!first || !second) throw new Error("the conversation has two turns");

    const { playedSeconds = 0, receivedSeconds = 0 } = first.interruption ?? {};
    expect(playedSeconds).toBeGreaterThanOrEqual(interrupted?.interruptAfterSeconds ?? Number.NaN);
    expect(receivedSeconds).toBeGreaterThanOrEqual(playedSeconds);
    // The user hears the beginning of the reply, which contains no word of the next reply.
    const beginning = wordsIn(first.written).slice(0, wordsOf(first).length);
    expect(wordsOf(first)).toEqual(beginning);
    expect(wordsOf(first).length > 0).toBe(protocol === "/ws3");

    expect(second.written).toBe(whole?.text);
    expect(wordsOf(second)).toEqual(wordsIn(second.written));
    expect(second.interruption).toBeUndefined();
    expect(second.wordErrorRate).toBeLessThanOrEqual(0.3);
    for (const error of second.startErrors) expect(Math.abs(error)).toBeLessThan(0.2);
    expect(renderConversation(protocol, turns)).toContain(second.heard);
  });
});
