/**
 * Builds and publishes a release (docs/how-to/release.md). `make release` runs it.
 *
 *   main.ts images --out FOLDER [--roles server,operator]
 *   main.ts publish --version V --registry R --out FOLDER --builds FOLDER[,FOLDER] (--key FILE | --keyless)
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { assembleRelease, type ReleasePlan } from "./assemble.ts";
import { addImage, type ImageDetails, writeIndex } from "./image-layout.ts";
import { programsIn } from "./programs.ts";
import { publishRelease } from "./publish.ts";
import { type SigningIdentity, signerFor } from "./signer.ts";

const sources = join(import.meta.dirname, "../..");
const usage = `usage: main.ts images  --out FOLDER [--roles server,operator]
       main.ts publish --version VERSION --registry REGISTRY --out FOLDER --builds FOLDER[,FOLDER]
                       (--key FILE | --keyless)

  images    build images for the architecture of this machine
  publish   merge the images of all architectures, add charts, CRDs and bills of materials, push and sign
`;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: "string" },
    roles: { type: "string", default: "server,operator" },
    version: { type: "string" },
    registry: { type: "string" },
    builds: { type: "string" },
    key: { type: "string" },
    keyless: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

const git = (...words: string[]): string =>
  execFileSync("git", words, { cwd: sources, encoding: "utf8" }).trim();
const script = (name: string, words: readonly string[], environment: NodeJS.ProcessEnv): string =>
  execFileSync(join(sources, "tools/release", name), words, {
    env: environment,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  }).trim();

function required(name: "out" | "version" | "registry" | "builds"): string {
  const value = values[name];
  if (value === undefined || value === "") throw new Error(`--${name} is missing\n${usage}`);
  return value;
}

/** The commit of the sources is the origin of all labels and times, so that each build of it is equal. */
function detailsOf(version: string): ImageDetails & { readonly commit: string; readonly source: string } {
  const commit = git("rev-parse", "HEAD");
  const source = "https://github.com/svc-tts/svc-tts";
  return {
    commit,
    source,
    epochSeconds: Number(process.env.SOURCE_DATE_EPOCH ?? git("log", "-1", "--format=%ct")),
    labels: {
      "org.opencontainers.image.revision": commit,
      "org.opencontainers.image.source": source,
      "org.opencontainers.image.version": version,
    },
  };
}

function versionOfSources(): string {
  return (JSON.parse(readFileSync(join(sources, "package.json"), "utf8")) as { version: string }).version;
}

function buildImages(programs: string): void {
  const out = required("out");
  const roles = values.roles.split(",");
  const details = detailsOf(versionOfSources());
  rmSync(out, { recursive: true, force: true });
  const archives = join(out, "archives");
  mkdirSync(archives, { recursive: true });
  script("build-images.sh", [archives, ...roles], { ...process.env, CRANE: join(programs, "crane") });
  for (const role of roles) {
    const archive = join(archives, role);
    mkdirSync(archive);
    execFileSync("tar", ["--extract", "--file", `${archive}.tar`, "--directory", archive]);
    const layout = join(out, "images", role);
    const digest = writeIndex(layout, [addImage(layout, archive, details)], details);
    console.log(`${role} ${digest}`);
  }
  writeFileSync(join(out, "bases.txt"), readFileSync(join(archives, "bases.txt")));
  rmSync(archives, { recursive: true });
}

function identityOf(): SigningIdentity {
  if (values.keyless) return { kind: "keyless" };
  if (values.key === undefined || values.key === "") {
    throw new Error("--key or --keyless is missing: cosign generate-key-pair creates a key");
  }
  return { kind: "key", path: values.key };
}

async function publish(programsFolder: string): Promise<void> {
  const startedAt = new Date().toISOString();
  const version = required("version");
  if (version !== versionOfSources()) {
    throw new Error(`the version of package.json is ${versionOfSources()}: it must be ${version} too`);
  }
  const identity = identityOf();
  const builds = required("builds").split(",");
  const folder = required("out");
  const { commit, source, ...details } = detailsOf(version);
  const plan: ReleasePlan = { version, registry: required("registry"), details, sources, folder };
  const programs = programsIn(programsFolder, process.env);
  const release = await assembleRelease(programs, plan, builds);
  const bases = builds.flatMap((build) => readFileSync(join(build, "bases.txt"), "utf8").split("\n"));
  const facts = {
    ...{ version, commit, source, startedAt },
    bases: [...new Set(bases)].filter((base) => base !== "").map((base) => base.replace(/^\w+=/, "")),
    builder: process.env.BUILDER_ID ?? `${source}/blob/main/Makefile`,
  };
  const signer = signerFor(programs, identity, folder);
  const artifacts = await publishRelease(programs, signer, plan, release, facts, () => new Date());
  for (const { name, reference } of artifacts) console.log(`${name} ${reference}`);
}

const [command] = positionals;
if (values.help || (command !== "images" && command !== "publish")) {
  console.log(usage);
  process.exitCode = values.help ? 0 : 2;
} else {
  const programs = script("programs.sh", [], process.env);
  if (command === "images") buildImages(programs);
  else await publish(programs);
}
