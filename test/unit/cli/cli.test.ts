import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { env } from "../../../config/contract/names.ts";
import { type Command, runCommand } from "../../../server/cli/command.ts";
import { keysCommand } from "../../../server/cli/keys.ts";
import { licenseCommands } from "../../../server/cli/license.ts";
import { prepareRunFiles } from "../../../server/cli/run-files.ts";
import { readApiSettings, readModelSettings, readPortOffset } from "../../../server/cli/settings.ts";
import { digestKey, isWellFormedKey } from "../../../server/store/key.ts";
import { parseKeyFile } from "../../../server/store/key-file.ts";
import { findEntry } from "../../../server/store/key-store.ts";

const commands: readonly Command[] = [...licenseCommands, keysCommand];
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-cli-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...words: string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand("svc-tts", commands, words, {
    env: {},
    signal: new AbortController().signal,
    program: ["node"],
    print: (text) => out.push(text),
    complain: (text) => err.push(text),
    now: () => Date.now(),
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

describe("the command line", () => {
  it("explains itself, whole and by group and by command", async () => {
    expect(await run("--help")).toMatchObject({ code: 0, out: expect.stringContaining("keys create") });
    expect((await run("license", "--help")).out).not.toContain("keys create");
    const help = await run("license", "issue", "--help");
    expect(help).toMatchObject({ code: 0, out: expect.stringMatching(/--days DAYS.*\(default 365\)/) });
  });

  it.each([
    [[], "no command was given"],
    [["sing"], "no command `sing`"],
    [["keys", "create", "--nmae", "x"], "it takes --name, --scopes, --expires, --file"],
    [["keys", "create"], "--name NAME is required"],
    [["keys", "create", "--name", "x", "--scopes", "root"], '"root" is none of them'],
    [["keys", "create", "--name", "x", "--expires", "2001-01-01"], "must be a time to come"],
    [["license", "issue", "--key", "/nowhere", "--licensee", "x"], "/nowhere, which is not there"],
    [
      ["license", "issue", "--key", "x", "--licensee", "x", "--days", "0"],
      "--days must be an integer from 1",
    ],
    [["license", "issue", "--key", "x", "--licensee", "x", "--models", "gpt"], '"gpt" is none of them'],
  ])("refuses %j and says what is allowed", async (words, says) => {
    expect(await run(...words)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(says) });
  });
});

describe("keys create", () => {
  it("prints the key alone on standard output, and keeps only its digest", async () => {
    const file = join(folder, "keys.yaml");
    const first = await run("keys", "create", "--name", "app", "--file", file);
    const second = await run(
      "keys",
      "create",
      "--name",
      "other",
      "--scopes",
      "tts:write,admin",
      "--file",
      file,
    );
    expect(isWellFormedKey(first.out)).toBe(true);
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(first.out);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(findEntry(parseKeyFile(text), digestKey(second.out))?.scopes).toEqual(["tts:write", "admin"]);
    const again = await run("keys", "create", "--name", "app", "--file", file);
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining("named app already") });
  });

  it("prints the entry to paste where no file is given", async () => {
    const { out, err } = await run("keys", "create", "--name", "app", "--expires", "2099-01-01");
    const entry = err.slice(err.indexOf("keys:\n"));
    expect(findEntry(parseKeyFile(entry), digestKey(out))).toMatchObject({
      name: "app",
      expiresAt: Date.UTC(2099, 0),
    });
  });
});

describe("license", () => {
  it("goes from keygen over issue to inspect", async () => {
    const at = (name: string) => join(folder, "vendor", name);
    expect((await run("license", "keygen", "--out", join(folder, "vendor"))).code).toBe(0);
    expect(statSync(at("private.jwk")).mode & 0o777).toBe(0o600);
    expect(readFileSync(at("jwks.json"), "utf8")).not.toContain('"d"');
    expect((await run("license", "keygen", "--out", join(folder, "vendor"))).err).toContain(
      "is there already",
    );
    const issued = await run(
      "license",
      "issue",
      "--key",
      at("private.jwk"),
      "--licensee",
      "ACME",
      "--models",
      "mist",
      "--days",
      "30",
    );
    const license = at("license.jwt");
    const { writeFileSync } = await import("node:fs");
    writeFileSync(license, issued.out);
    const seen = await run("license", "inspect", "--license", license, "--jwks", at("jwks.json"));
    expect(seen.code).toBe(0);
    expect(JSON.parse(seen.out)).toMatchObject({
      state: "valid",
      claims: { sub: "ACME", models: ["mist"], maxStreams: 256, graceDays: 7 },
    });
    // the signature's first character: its last one has bits that do not count
    const forged = issued.out.replace(/\.(.)(?=[^.]*$)/, (_, first) => (first === "A" ? ".B" : ".A"));
    writeFileSync(license, forged);
    expect((await run("license", "inspect", "--license", license, "--jwks", at("jwks.json"))).code).toBe(1);
  });
});

describe("settings", () => {
  const routing = { [env.routingFile]: "/routing.json" };
  it("have defaults, and an empty variable counts as unset", () => {
    expect(readApiSettings({ ...routing, [env.port]: "" })).toMatchObject({ port: 8000, logLevel: "info" });
    expect(readModelSettings("arcana", {})).toMatchObject({ tier: "arcana", port: 8080 });
  });

  it.each([
    [{ ...routing, [env.port]: "http" }, 'SVC_TTS_PORT must be an integer from 0 to 65535; it is "http".'],
    [{ ...routing, [env.drainSeconds]: "-1" }, "SVC_TTS_DRAIN_SECONDS must be an integer"],
    [{ ...routing, [env.logLevel]: "loud" }, "SVC_TTS_LOG_LEVEL must be one of trace"],
    [{}, "neither is set"],
    [{ ...routing, [env.routingConfigMap]: "x" }, "both is set"],
    [{ [env.routingConfigMap]: "x", [env.namespace]: "n" }, "KUBERNETES_SERVICE_HOST is not set"],
  ])("refuse %o and name variable, value and what is allowed", (environment, says) => {
    expect(() => readApiSettings(environment)).toThrow(says);
  });

  it("refuse an offset that is no number of ports", () => {
    expect(readPortOffset({ PORT_OFFSET: "100" })).toBe(100);
    expect(() => readPortOffset({ PORT_OFFSET: "ten" })).toThrow("PORT_OFFSET must be an integer");
  });
});

describe("the files of a run", () => {
  it("are made once, kept between runs, and readable by their owner alone", async () => {
    const options = { folder: join(folder, "run"), ports: { mist: 8080, arcana: 8090 }, now: Date.now() };
    const first = await prepareRunFiles(options);
    const license = readFileSync(first.licenseFile, "utf8");
    const second = await prepareRunFiles(options);
    expect(second.key).toBe(first.key);
    expect(readFileSync(first.licenseFile, "utf8")).toBe(license);
    for (const path of [first.keysFile, first.licenseFile, first.routingFile, join(options.folder, "key")]) {
      expect(existsSync(path)).toBe(true);
      expect(statSync(path).mode & 0o077).toBe(0);
    }
    const aYearLater = await prepareRunFiles({ ...options, now: options.now + 366 * 86_400_000 });
    expect(readFileSync(aYearLater.licenseFile, "utf8")).not.toBe(license);
  });
});
