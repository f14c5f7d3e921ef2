import { describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { voices } from "../../../../config/contract/voices.ts";
import { defaultAliases } from "../../../../server/api/request/aliases.ts";
import { dialectOf } from "../../../../server/api/sockets/dialects.ts";
import { shareSettings } from "../../../../server/api/sockets/shared-settings.ts";
import { SocketConnection } from "../../../../server/api/sockets/socket-connection.ts";
import type { SocketRules } from "../../../../server/api/sockets/socket-settings.ts";
import type {
  SocketCaller,
  SocketSynthesisServices,
} from "../../../../server/api/sockets/socket-synthesis.ts";
import { TextSocket } from "../../../../server/api/sockets/text-socket.ts";
import type { Failure } from "../../../../server/contract/errors.ts";
import { type IncomingHeaders, noSpan } from "../../../../server/tracing/span.ts";

const rules: SocketRules = { voices, profile: "self-hosted", highestRate: 384_000, aliases: defaultAliases };
const query = "speaker=luna&modelId=arcana";

describe("the settings of sockets", () => {
  it("are one frozen object for equal queries", () => {
    const settingsOf = shareSettings(() => ({ ...rules }));
    const settings = settingsOf(query);
    expect(settingsOf(query)).toBe(settings);
    expect(settingsOf(`${query}&segment=never`)).not.toBe(settings);
    expect(Object.isFrozen(settings.speech.invocation)).toBe(true);
  });

  it("are read again after the list of voices has changed", () => {
    let current = rules;
    const settingsOf = shareSettings(() => current);
    expect(settingsOf(query).speech.invocation.speaker).toBe("luna");
    current = { ...rules, voices: voices.filter(({ id }) => id !== "luna") };
    expect(() => settingsOf(query)).toThrow(
      expect.objectContaining<Partial<Failure>>({ code: "invalid_request" }),
    );
  });
});

it("a socket without messages has no session", () => {
  const closed = { readyState: 3, OPEN: 1 } as WebSocket;
  const socket = new TextSocket({
    ...{ parts: {} as SocketSynthesisServices, caller: {} as SocketCaller, socket: closed },
    ...{
      settings: shareSettings(() => rules)(query),
      dialect: dialectOf({ route: "/ws3" }),
      clearMode: "abort",
    },
  });
  expect([socket.countContexts(), socket.hasSession]).toEqual([0, false]);
  socket.receive(Buffer.from("not JSON"));
  expect([socket.countContexts(), socket.hasSession]).toEqual([0, true]);
});

it("a connection keeps only the headers of the trace", () => {
  const used: IncomingHeaders[] = [];
  const tracing = {
    begin: (_name: string, headers: IncomingHeaders) => {
      used.push(headers);
      return noSpan;
    },
    stop: async () => undefined,
  };
  const connect = (headers: IncomingHeaders) =>
    new SocketConnection({
      ...{ tracing, requestId: "1", endpoint: "/ws3", identity: undefined, headers },
      ...{ socket: {} as never, webSocket: {} as never },
    });
  connect({ traceparent: "00-1-2-01", authorization: "Bearer key" }).beginSpan("1.0");
  connect({ authorization: "Bearer key" }).forContext("1.1", undefined).beginSpan("1.1.0");
  expect(used).toEqual([{ traceparent: "00-1-2-01" }, {}]);
});
