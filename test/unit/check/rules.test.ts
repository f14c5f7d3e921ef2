import { describe, expect, it } from "vitest";
import { judge, judgeText } from "../../check/rules.ts";
import { readSource } from "../../check/source.ts";

/** Returns the messages of the rules for one file with this text. */
function messages(path: string, text: string): string[] {
  return judge([readSource(path, text)]).map(({ message }) => message);
}

describe("the rules of the project refuse", () => {
  it.each([
    ["operator/serve/observe.ts", 'import { Failure } from "../../server/errors.ts";', "config/contract"],
    ["server/api/app.ts", 'import { permissions } from "../../operator/permissions.ts";', "two programs"],
    [
      "config/contract/names.ts",
      'import type { Frame } from "../../server/speech.ts";',
      "share only config/contract",
    ],
    ["crds/generate.ts", 'import { rulesOf } from "../operator/permissions.ts";', "crds/ may import"],
    ["crds/fields.ts", 'export * from "../operator/outcome.ts";', "crds/ may import"],
    ["server/wire.ts", 'const load = () => import("../test/support/world.ts");', "server/ may import"],
    ["server/api/models.ts", 'import { speak } from "../engine/contract.ts";', "Send an invocation"],
    [
      "server/api/models.ts",
      'import type { Token } from "../text/tokens.ts";',
      "container of the model tier",
    ],
    ["server/api/sockets/a.ts", 'import { normalize } from "../../text/normalize.ts";', "server/contract"],
    [
      "server/api/app.ts",
      'import type { SpeechJob } from "../model/speak.ts";',
      "container of the model tier",
    ],
    ["server/contract/text/ipa.ts", 'import { readFileSync } from "node:fs";', "no network, files"],
    ["server/text/sentences.ts", 'import { readFileSync } from "node:fs";', "no network, files"],
    ["server/text/sentences.ts", 'import { readFileSync } from "fs";', "node:fs"],
    ["server/audio/wav.ts", 'import { randomBytes } from "node:crypto";', "randomness"],
    ["operator/desired/secret.ts", 'import * as crypto from "node:crypto";', "randomness"],
    ["server/audio/wav.ts", 'import "node:net";', "no network"],
    ["operator/desired/service.ts", 'import { request } from "undici";', "purePackages"],
    ["operator/desired/service.ts", 'import { list } from "../cluster/client.ts";', "no network"],
    ["operator/status/ready.ts", "const at = Date.now();", "clock"],
    ["operator/status/ready.ts", "const at = new Date();", "clock"],
    ["config/contract/license.ts", "const at = performance.now();", "clock"],
    ["server/text/numbers.ts", "const pick = Math.random();", "randomness"],
    ["server/audio/pcm.ts", 'console.log("here");', "uses console.log"],
    ["server/audio/pcm.ts", 'const answer = fetch("http://localhost");', "uses fetch"],
    ["server/audio/pcm.ts", "const run = globalThis.process;", "uses globalThis"],
    ["crds/fields.ts", "const { env } = process;", "uses process.env"],
    [
      "operator/reconcile.ts",
      'import { KubeConfig } from "@kubernetes/client-node";',
      "only operator/cluster/",
    ],
    [
      "operator/facts/kubernetes-object.ts",
      'import { KubeConfig } from "@kubernetes/client-node";',
      "only operator/cluster/",
    ],
    ["server/api/routing.ts", 'import type { V1Pod } from "@kubernetes/client-node";', "Kubernetes client"],
    ["server/api/app.ts", "const port = process.env.PORT;", "only a main.ts"],
    ["server/api/app.ts", 'const port = process["env"].PORT;', "only a main.ts"],
    ["server/engine/flite.ts", "process.exit(1);", "only a main.ts"],
    ["operator/loop/queue.ts", "process.exitCode = 1;", "only a main.ts"],
    ["operator/loop/queue.ts", 'import { env } from "node:process";', "only a main.ts"],
    ["operator/loop/queue.ts", 'import process from "node:process";', "only a main.ts"],
    [
      "test/unit/a.test.ts",
      'import { it } from "vitest"; it.skip("later", () => {});',
      "every test must run",
    ],
    [
      "test/unit/a.test.ts",
      'import { describe } from "vitest"; describe.only("one", () => {});',
      "every test must run",
    ],
    [
      "test/e2e/a.test.ts",
      'import { it } from "vitest"; it.skipIf(true)("gpu", () => {});',
      "every test must run",
    ],
  ])("in %s: %s", (path, text, message) => {
    expect(messages(path, text)).toContainEqual(expect.stringContaining(message));
  });

  it("an import cycle, with one finding that names its files", () => {
    const found = judge([
      readSource("server/a.ts", 'import { b } from "./b.ts";'),
      readSource("server/b.ts", 'import { c } from "./c.ts";'),
      readSource("server/c.ts", '\nimport type { A } from "./a.ts";'),
      readSource("server/d.ts", 'import "./a.ts";'),
    ]);
    expect(found).toEqual([
      {
        path: "server/c.ts",
        line: 2,
        message: expect.stringContaining("server/a.ts → server/b.ts → server/c.ts → server/a.ts"),
      },
    ]);
  });

  it.each([
    ["docs/install.md", `see https://${["registry", "npmjs", "org"].join(".")}/svc`, "package registry"],
    ["Containerfile", `RUN echo http://${["deb", "debian", "org"].join(".")}`, "package registry"],
    ["server/api/app.ts", `// ${"TO"}${"DO"}: later`, "leaves work for later"],
    ["test/e2e/a.test.ts", `it("speaks", { ${"retry"}: 2 }, () => {});`, "retries a test"],
  ])("in the text of %s: %s", (path, text, message) => {
    expect(judgeText(path, text)).toEqual([{ path, line: 1, message: expect.stringContaining(message) }]);
  });
});

describe("the rules of the project allow", () => {
  it.each([
    ["operator/desired/service.ts", 'import { children } from "../../config/contract/names.ts";'],
    ["operator/desired/service.ts", 'import { createHash } from "node:crypto";'],
    ["operator/desired/service.ts", 'import type { Clock } from "../../lib/clock.ts";'],
    ["operator/status/ready.ts", "const at = (now: number) => new Date(now).toISOString();"],
    ["operator/status/ready.ts", "const wait = (process: { env: string }) => process.env;"],
    ["operator/facts/kubernetes-object.ts", 'export type { V1Deployment } from "@kubernetes/client-node";'],
    ["operator/cluster/connect.ts", 'import { KubeConfig } from "@kubernetes/client-node";'],
    ["charts/generate.ts", 'import { rulesOf } from "../operator/permissions.ts";'],
    ["crds/generate.ts", 'import { writeFile } from "node:fs/promises";'],
    ["server/main.ts", "process.exitCode = Number(process.env.CODE);"],
    ["server/model/mist/main.ts", 'import { readFileSync } from "node:fs"; const { env } = process;'],
    ["server/api/app.ts", "const started = Date.now();"],
    [
      "server/api/sockets/segmentation.ts",
      'import { sentenceEnds } from "../../contract/text/sentence-ends.ts";',
    ],
    ["server/text/markup.ts", 'import { readPhonemes } from "../contract/text/phonemes.ts";'],
    ["test/unit/a.test.ts", 'import { it } from "vitest"; it.each([1])("is %i", () => {});'],
  ])("in %s: %s", (path, text) => {
    expect(messages(path, text)).toEqual([]);
  });
});

describe("a source that is not valid TypeScript", () => {
  it("is refused, and the error names the line", () => {
    expect(() => readSource("server/a.ts", "const a = 1;\nconst = 2;")).toThrow("server/a.ts:2");
  });
});
