import { expect, test } from "vitest";
import { measureCapacity } from "../../../../server/engine/vllm/capacity.ts";

/** A server that produces this many seconds of audio per second in total, and at most that for one stream. */
function server(inAll: number, forOne: number) {
  return async (streams: number) => Math.min(forOne, inAll / streams);
}

test.each([
  ["as many as are admitted, of a fast one", server(1000, 20), 32, 32],
  ["as many as share it with some room", server(11.5, 5), 32, 10],
  ["no more than were seen to fit", server(4.7, 5), 32, 4],
  ["one, where two do not fit", server(1.5, 1.5), 32, 1],
  ["none, of one that is slower than speech", server(0.8, 0.8), 32, 0],
])("a server has capacity for %s", async (_, speedOf, most, streams) => {
  expect((await measureCapacity(most, speedOf)).streams).toBe(streams);
});
