import { existsSync, globSync, readFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const containerfile = readFileSync(join(root, "Containerfile"), "utf8");

function listedPackages(role: string): string[] {
  return new RegExp(`^ARG ${role}_PACKAGES=(.*)$`, "m").exec(containerfile)?.[1]?.split(",").toSorted() ?? [];
}

/** Returns the npm packages that these source files import, statically, dynamically or with `resolve`. */
function importedPackages(...patterns: string[]): string[] {
  const names = new Set<string>();
  for (const file of globSync(patterns, { cwd: root })) {
    const source = readFileSync(join(root, file), "utf8").replaceAll(/^import type .*$/gm, "");
    for (const [, specifier = ""] of source.matchAll(
      /(?:from|import|import\(|resolve\()\s*"([@a-z][^":]*)"/g,
    )) {
      if (!isBuiltin(specifier)) names.add(/^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier);
    }
  }
  return [...names].toSorted();
}

test.each([
  { role: "SERVER", sources: ["server/**/*.ts", "lib/**/*.ts", "config/contract/**/*.ts"] },
  { role: "OPERATOR", sources: ["operator/**/*.ts", "lib/**/*.ts", "crds/*.ts", "config/contract/**/*.ts"] },
])("the $role image contains every package that its sources import", ({ role, sources }) => {
  const needed = importedPackages(...sources);
  expect(needed.length).toBeGreaterThan(3);
  expect(listedPackages(role)).toEqual(expect.arrayContaining(needed));
});

test("the base image has the version of Node that package.json pins", () => {
  const pinned = (
    JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: { node: string } }
  ).dependencies.node;
  expect(containerfile).toContain(`ARG BASE=docker.io/library/node:${pinned}-`);
});

test("the arcana image has a base for each value of CODEC, and the default is the processor", () => {
  expect(containerfile).toMatch(/^ARG CODEC=cpu$/m);
  expect(containerfile).toMatch(/^FROM arcana-\$\{CODEC\} AS arcana$/m);
  const bases = [
    ...containerfile.matchAll(/^FROM \$\{VLLM\} AS arcana-(\S+)\nENV GENERATOR_CODEC_PROVIDERS=(\S+)$/gm),
  ];
  expect(bases.map(([, codec, providers]) => [codec, providers])).toEqual([
    ["cpu", "cpu"],
    ["cuda12", "cuda,cpu"],
  ]);
});

test("the stage with CUDA uses the names and the folder of the pinned version of ONNX Runtime", () => {
  const folder = join(root, "node_modules/onnxruntime-node");
  const metadata = createRequire(import.meta.url)(join(folder, "script/install-metadata.js")) as {
    requirements: Record<string, string[]>;
    manifests: Record<string, Record<string, object>>;
  };
  expect(metadata.requirements["linux/x64"]).toContain("cuda12");
  const libraries = Object.keys(metadata.manifests["linux/x64:cuda12"] ?? {}).map((name) =>
    name.replace("./", ""),
  );
  const copied = [
    ...containerfile.matchAll(/bin\/(napi-v\d+)\/linux\/x64\/(libonnxruntime_providers_\w+\.so)/g),
  ];
  expect(copied.length).toBeGreaterThan(2);
  for (const [, api = "", library = ""] of copied) {
    expect(libraries).toContain(library);
    expect(existsSync(join(folder, "bin", api, "linux/x64"))).toBe(true);
  }
});

test("the license label of each image includes the copyleft licenses of its packages", () => {
  const stages = containerfile.split(/^FROM /m).slice(1);
  const labels = new Map(
    stages.flatMap((stage) => {
      const name = / AS (\S+)/.exec(stage)?.[1];
      const licenses = /image\.licenses="([^"]+)"/.exec(stage)?.[1];
      return name === undefined || licenses === undefined ? [] : [[name, licenses]];
    }),
  );
  const copyleft = (role: string) =>
    listedPackages(role).filter((name) => {
      const { license } = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"));
      return /GPL|AGPL/.test(license);
    });
  expect(copyleft("OPERATOR")).toEqual([]);
  expect(copyleft("SERVER")).toEqual(["@echogarden/espeak-ng-emscripten"]);
  expect(Object.fromEntries(labels)).toEqual({
    operator: "Apache-2.0",
    server: "Apache-2.0 AND GPL-3.0-or-later",
    arcana: "Apache-2.0 AND GPL-3.0-or-later",
  });
});

test("npm runs no install script of a package except that of node, in the images and in the Makefile", () => {
  const texts = [containerfile, readFileSync(join(root, "Makefile"), "utf8")];
  const commands = texts.flatMap((text) => text.match(/npm (?:ci|install|rebuild)\b[^\n&#]*/gu) ?? []);
  expect(commands.length).toBeGreaterThanOrEqual(3);
  expect(
    commands.filter((command) => !/--ignore-scripts|^npm rebuild node --silent\s*$/u.test(command)),
  ).toEqual([]);
});
