/** Tests the file for docker compose against the image and the options of the command. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { ports } from "../../../config/contract/names.ts";
import { allCommand } from "../../../server/cli/all.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const compose = parse(read("config/compose.yaml")) as {
  services: { server: { command: string[]; ports: string[]; volumes: string[] } };
  volumes: Record<string, unknown>;
};
const { server } = compose.services;

it("docker compose uses options that svc-tts all has", () => {
  const [command, ...words] = server.command;
  expect(command).toBe(allCommand.name);
  const options = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
  expect(Object.keys(allCommand.options)).toEqual(expect.arrayContaining(options));
});

it("docker compose keeps the data of the image in a volume, and publishes the API on this machine only", () => {
  const folder = /^ENV XDG_DATA_HOME=(.+)$/m.exec(read("Containerfile"))?.[1];
  expect(server.volumes).toEqual([`data:${folder}`]);
  expect(Object.keys(compose.volumes)).toEqual(["data"]);
  expect(server.ports).toEqual([`127.0.0.1:${ports.api}:${ports.api}`]);
});

it("the README starts the same container with docker run", () => {
  const line = /^docker run .*$/m.exec(read("README.md"))?.[0] ?? "";
  expect(line).toContain(server.command.join(" "));
  expect(line).toContain(`-p ${server.ports[0]}`);
  expect(line).toContain(`-v svc-tts:${server.volumes[0]?.split(":")[1]}`);
});
