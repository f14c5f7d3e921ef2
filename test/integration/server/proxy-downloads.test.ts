import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { downloadVariables } from "../../../operator/desired/pods/downloads.ts";
import { FileServer } from "../../support/server/file-server.ts";

const main = join(import.meta.dirname, "../../../server/main.ts");

it("svc-tts fetch uses the proxy that the operator sets, except for the hosts of noProxy", async () => {
  await using files = await FileServer.start();
  const content = Buffer.from("a model");
  files.files.set("/a.onnx", content);
  const proxy = createServer();
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-proxy-"));
  try {
    const { port } = proxy.address() as AddressInfo;
    const variables = downloadVariables({ proxy: `http://127.0.0.1:${port}`, noProxy: ["127.0.0.1"] });
    const own = Object.fromEntries(variables.map(({ name, value = "" }) => [name, value]));
    const env = { PATH: process.env.PATH, ...own };
    const words = [main, "fetch", "--into", folder];
    const sha256 = createHash("sha256").update(content).digest("hex");
    await promisify(execFile)(
      process.execPath,
      [...words, "--source", `${files.url}/a.onnx`, "--sha256", sha256],
      { env },
    );
    const connected = once(proxy, "connect");
    const child = spawn(process.execPath, [...words, "--source", "https://models.invalid/a.onnx"], { env });
    try {
      const [request, socket] = await connected;
      expect(request.url).toBe("models.invalid:443");
      socket.destroy();
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  } finally {
    proxy.close();
    await rm(folder, { recursive: true });
  }
});
