import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runFolder } from "../../../server/cli/run-files.ts";
import { folderOfTests } from "../../support/folder.ts";

const home = folderOfTests("home");

describe("the folder of svc-tts all", () => {
  it("is in the user's data folder, which XDG_DATA_HOME can set", () => {
    expect(runFolder({ HOME: home })).toBe(join(home, ".local/share/svc-tts/run"));
    expect(runFolder({ HOME: home, XDG_DATA_HOME: "relative" })).toBe(join(home, ".local/share/svc-tts/run"));
    expect(runFolder({ HOME: home, XDG_DATA_HOME: "/data" })).toBe("/data/svc-tts/run");
  });

  it("is moved once from the cache folder, which an earlier release used", () => {
    const former = join(home, ".cache/svc-tts/run");
    mkdirSync(join(former, "token"), { recursive: true });
    writeFileSync(join(former, "token/token"), "secret", { mode: 0o600 });
    const folder = runFolder({ HOME: home });
    expect(readFileSync(join(folder, "token/token"), "utf8")).toBe("secret");
    expect(statSync(join(folder, "token/token")).mode & 0o777).toBe(0o600);
    expect(() => statSync(former)).toThrow("ENOENT");
    mkdirSync(former, { recursive: true });
    writeFileSync(join(former, "new"), "");
    expect(runFolder({ HOME: home })).toBe(folder);
    expect(() => statSync(join(folder, "new"))).toThrow("ENOENT");
  });
});
