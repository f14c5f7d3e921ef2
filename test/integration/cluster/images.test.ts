/**
 * Tests the arguments that `make images` passes to Podman if no registry is available. Scripts replace the
 * programs (`make test-kind` runs real ones).
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
 * Runs images.sh. Podman has the images whose names match `has`.
 * @returns the arguments that Podman received, and the standard output
 */
function askedOfPodman(
  has: string,
  environment: NodeJS.ProcessEnv,
  mmdebstrap = `while [ "$#" -gt 1 ]; do shift; done; touch "$1"`,
): { asked: string[]; printed: string } {
  const asked = join(folder, "asked");
  program(
    "podman",
    `echo "$*" >>${asked}
    case "$1 $2" in
      "image inspect") [[ $3 =~ ${has} ]] || grep -q -- "--tag $3 " ${asked} ;;
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
  return { asked: readFileSync(asked, "utf8").trim().split("\n"), printed };
}

const debian =
  /--build-arg BASE=localhost\/svc-tts-node:bookworm\S* --build-arg RUNTIME=localhost\/svc-tts-debian:bookworm/;

test("without a registry the base is built once from Debian and npm, and used by both builds", () => {
  const { asked } = askedOfPodman("none", { SVC_TTS_BASE: "debian" });
  expect(asked.filter((line) => line.startsWith("import"))[0]).toMatch(
    /debian\.tar localhost\/svc-tts-debian:bookworm/,
  );
  expect(asked.filter((line) => line.includes("--file - "))[0]).toMatch(
    /^build --tag localhost\/svc-tts-node:bookworm/,
  );
  const builds = asked.filter((line) => line.startsWith("build --layers"));
  expect(builds).toEqual([expect.stringMatching(debian), expect.stringMatching(debian)]);
});

test("an existing base is used", () => {
  const { asked } = askedOfPodman("svc-tts-node", { SVC_TTS_BASE: "debian" });
  expect(asked.filter((line) => line.startsWith("import"))).toEqual([]);
  expect(asked.filter((line) => debian.test(line))).toHaveLength(2);
});

test("the base of the Containerfile is used if the engine has it", () => {
  const { asked } = askedOfPodman("library/node", {});
  expect(asked.filter((line) => line.startsWith("build --layers"))).toHaveLength(2);
  expect(asked.filter((line) => debian.test(line))).toEqual([]);
});

test("a base that cannot be built stops the build of the images", () => {
  expect(() => askedOfPodman("none", { SVC_TTS_BASE: "debian" }, "exit 1")).toThrow(
    /could not be assembled into a base image/,
  );
  expect(readFileSync(join(folder, "asked"), "utf8")).not.toContain("build");
});

test("the values of the chart for the images are printed at the end", () => {
  const { printed } = askedOfPodman("library/node", { SVC_TTS_IMAGE_REPOSITORY: "registry.example/svc-tts" });
  for (const role of ["server", "operator"])
    expect(printed).toMatch(
      new RegExp(
        `--set images\\.${role}\\.repository=registry\\.example/svc-tts/${role} --set-string images\\.${role}\\.tag=\\d+\\.\\d+\\.\\d+-[0-9a-f]{16}\\n`,
      ),
    );
});
