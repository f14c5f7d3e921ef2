/**
 * Tests the arguments that `make images` passes to Podman if no registry is available. Scripts replace
 * Podman, mmdebstrap and npm. `make test-kind` runs the real programs.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = join(import.meta.dirname, "../../cluster/images.sh");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-images-"));
  mkdirSync(join(folder, "bin"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const program = (name: string, lines: string): void => {
  writeFileSync(join(folder, "bin", name), `#!/bin/bash\n${lines}\n`);
  chmodSync(join(folder, "bin", name), 0o755);
};

/**
 * Runs images.sh with a Podman that has all images with names that match `existing`.
 * @returns the arguments that Podman received, and the standard output
 */
function podmanArguments(
  existing: string,
  environment: NodeJS.ProcessEnv,
  mmdebstrap = `while [ "$#" -gt 1 ]; do shift; done; touch "$1"`,
): { podmanCalls: string[]; printed: string } {
  const callsFile = join(folder, "calls");
  program(
    "podman",
    `echo "$*" >>${callsFile}
    case "$1 $2" in
      "image inspect") [[ $3 =~ ${existing} ]] || grep -q -- "--tag $3 " ${callsFile} ;;
      "build --tag") cat >/dev/null ;;
      "save "*) touch "$6" ;;
    esac`,
  );
  program("mmdebstrap", mmdebstrap);
  program(
    "npm",
    `[ "$1" = pack ] || exit 0; mkdir -p package/bin; touch package/bin/node; tar -cf packed.$$ package; rm -r package; echo packed.$$`,
  );
  const printed = execFileSync(script, ["--print-values"], {
    env: {
      ...process.env,
      ...environment,
      PATH: `${join(folder, "bin")}:${process.env.PATH}`,
      SVC_TTS_CACHE: folder,
      SVC_TTS_BUILDER: "podman",
    },
    stdio: "pipe",
    encoding: "utf8",
  });
  return { podmanCalls: readFileSync(callsFile, "utf8").trim().split("\n"), printed };
}

const debian =
  /--build-arg BASE=localhost\/svc-tts-node:bookworm\S* --build-arg RUNTIME=localhost\/svc-tts-debian:bookworm/;

test("without a registry, the base image is built once from Debian and npm, and both builds use it", () => {
  const { podmanCalls } = podmanArguments("none", { SVC_TTS_BASE: "debian" });
  expect(podmanCalls.filter((line) => line.startsWith("import"))[0]).toMatch(
    /debian\.tar localhost\/svc-tts-debian:bookworm/,
  );
  expect(podmanCalls.filter((line) => line.includes("--file - "))[0]).toMatch(
    /^build --tag localhost\/svc-tts-node:bookworm/,
  );
  const builds = podmanCalls.filter((line) => line.startsWith("build --layers"));
  expect(builds).toEqual([expect.stringMatching(debian), expect.stringMatching(debian)]);
});

test("both builds use an existing base image", () => {
  const { podmanCalls } = podmanArguments("svc-tts-node", { SVC_TTS_BASE: "debian" });
  expect(podmanCalls.filter((line) => line.startsWith("import"))).toEqual([]);
  expect(podmanCalls.filter((line) => debian.test(line))).toHaveLength(2);
});

test("both builds use the base image of the Containerfile if the container engine has it", () => {
  const { podmanCalls } = podmanArguments("library/node", {});
  expect(podmanCalls.filter((line) => line.startsWith("build --layers"))).toHaveLength(2);
  expect(podmanCalls.filter((line) => debian.test(line))).toEqual([]);
});

test("a failed build of the base image stops the build of the images", () => {
  expect(() => podmanArguments("none", { SVC_TTS_BASE: "debian" }, "exit 1")).toThrow(
    /mmdebstrap could not create a base image/,
  );
  expect(readFileSync(join(folder, "calls"), "utf8")).not.toContain("build");
});

test("the values of the chart for the images are printed at the end", () => {
  const { printed } = podmanArguments("library/node", {
    SVC_TTS_IMAGE_REPOSITORY: "registry.example/svc-tts",
  });
  for (const role of ["server", "operator"])
    expect(printed).toMatch(
      new RegExp(
        `--set images\\.${role}\\.repository=registry\\.example/svc-tts/${role} --set-string images\\.${role}\\.tag=\\d+\\.\\d+\\.\\d+-[0-9a-f]{16}\\n`,
      ),
    );
});
