import { expect, test } from "vitest";
import { measureCapacity } from "../../../../server/engine/vllm/capacity.ts";

/**
 * Simulates a server.
 *
 * @param total the seconds of audio that it generates per second for all streams together
 * @param perStream the most seconds of audio that it generates per second for one stream
 */
function server(total: number, perStream: number) {
  return async (streams: number) => Math.min(perStream, total / streams);
}

test.each([
  ["the maximum for a fast server", server(1000, 20), 32, 32],
  ["a number of streams that leaves a reserve", server(11.5, 5), 32, 10],
  ["at most the number of streams that was measured to be fast enough", server(4.7, 5), 32, 4],
  ["one stream if two are too slow", server(1.5, 1.5), 32, 1],
  ["no stream for a server that is slower than real time", server(0.8, 0.8), 32, 0],
])("measureCapacity returns %s", async (_, speedOf, most, streams) => {
  expect((await measureCapacity(most, speedOf)).streams).toBe(streams);
});
