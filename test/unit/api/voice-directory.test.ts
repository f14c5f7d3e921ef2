/** Tests the list of voices that the API tier keeps. */
import { expect, it, onTestFinished } from "vitest";
import { createVoiceDirectory } from "../../../server/api/upstream/voice-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FileServer } from "../../support/server/file-server.ts";

const own = [
  { id: "own", models: ["mist" as const], language: "eng", gender: "male" as const, license: "MIT" },
];
const mounted = (id: string) => ({ id, models: ["mist"], language: "eng", gender: "female", license: "MIT" });

it("is the same object until a replica reports other voices, because open sockets keep it", async () => {
  await using replica = await FileServer.start();
  const report = (...ids: string[]) =>
    replica.files.set("/voices", Buffer.from(JSON.stringify({ voices: ids.map(mounted) })));
  report("nora");
  const clock = new FakeClock();
  const route = { pool: "mist" };
  const voices = createVoiceDirectory({
    ...{ own, intervalMs: 2000, timeoutMs: 1000, clock },
    directory: {
      table: () => ({ version: 1, profile: "self-hosted", models: { mist: [route] } }) as never,
      replicas: () => [replica.url],
      onChange: () => undefined,
      close: () => undefined,
    },
  });
  onTestFinished(() => voices.close());
  const ids = () => voices.all().map(({ id }) => id);
  await eventually("the voice is listed", () => ids().includes("nora"));
  const first = voices.all();

  for (const requests of [2, 3]) {
    await clock.advance(2000);
    await eventually("the voices are requested", () => replica.requests.length === requests);
  }
  expect(voices.all()).toBe(first);
  report("nora", "otto");
  await clock.advance(2000);
  await eventually("the new voice is listed", () => ids().includes("otto"));
});
