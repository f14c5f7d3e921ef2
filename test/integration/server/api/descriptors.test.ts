import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

interface Part {
  readonly messages: readonly string[];
  readonly isDisconnected: boolean;
}

it("an API tier without free file descriptors continues, logs each outage once, and disconnects stalled clients afterwards", async () => {
  const program = fileURLToPath(new URL("../../../support/starved-api/main.ts", import.meta.url));
  const command = ["-c", 'ulimit -n 256; exec "$@"', "bash", process.execPath, program];
  const { stdout } = await promisify(execFile)("bash", command);
  const { without, afterwards, status } = JSON.parse(stdout) as {
    readonly without: Part;
    readonly afterwards: Part;
    readonly status: number;
  };
  const aboutQueues = ({ messages }: Part) => messages.filter((message) => message.includes("send queues"));
  expect(aboutQueues(without)).toEqual([
    expect.stringMatching(/^the send queues of the kernel cannot be read; /),
  ]);
  expect(without.isDisconnected).toBe(false);
  expect(aboutQueues(afterwards)).toEqual(["the send queues of the kernel can be read again"]);
  expect(afterwards.messages).toContain("a connection was closed because its client read no data");
  expect(status).toBe(200);
});
