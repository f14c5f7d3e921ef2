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
import { UsageError } from "../../lib/usage-error.ts";
import { assembleRelease, type ReleasePlan, requireOutside, requireSameSources } from "./assemble.ts";
import { addImage, type ImageDetails, writeIndex } from "./image-layout.ts";
import { programsIn } from "./programs.ts";
import { publishRelease } from "./publish.ts";
import { type SigningIdentity, signerFor } from "./signer.ts";

const sources = join(import.meta.dirname, "../..");
const usage = `usage: main.ts images  --out FOLDER [--roles server,operator] [--allow-changes]
       main.ts publish --version VERSION --registry REGISTRY --out FOLDER --builds FOLDER[,FOLDER]
                       (--key FILE [--certificate FILE --trusted-root FILE] | --keyless) [--allow-changes]

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
    certificate: { type: "string" },
    "trusted-root": { type: "string" },
    "allow-changes": { type: "boolean", default: false },
    keyless: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

const git = (...words: string[]): string =>
  execFileSync("git", words, { cwd: sources, encoding: "utf8" }).trim();
const script = (name: string, ...words: readonly string[]): string =>
  execFileSync(join(sources, "tools/release", name), words, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  }).trim();

function required(name: "out" | "version" | "registry" | "builds"): string {
  const value = values[name];
  if (value === undefined || value === "") throw new UsageError(`--${name} is missing`);
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

/** The labels and the provenance name a commit, so the sources must be those of the commit. */
function requireCommitted(): void {
  if (values["allow-changes"] || git("status", "--porcelain") === "") return;
  throw new UsageError(
    "the sources have changes that are not committed. Commit them, or set --allow-changes",
  );
}

function versionOfSources(): string {
  return (JSON.parse(readFileSync(join(sources, "package.json"), "utf8")) as { version: string }).version;
}

function buildImages(out: string): void {
  const roles = values.roles.split(",");
  const details = detailsOf(versionOfSources());
  requireOutside(out, [sources]);
  rmSync(out, { recursive: true, force: true });
  const archives = join(out, "archives");
  mkdirSync(archives, { recursive: true });
  script("build-images.sh", archives, ...roles);
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
    throw new UsageError("--key or --keyless is missing: cosign generate-key-pair creates a key");
  }
  const { key: path, certificate, "trusted-root": trustedRoot } = values;
  if ((certificate === undefined) !== (trustedRoot === undefined)) {
    throw new UsageError(
      "--certificate needs --trusted-root, which contains the authority of the certificate",
    );
  }
  return certificate === undefined || trustedRoot === undefined
    ? { kind: "key", path }
    : { kind: "key", path, certificate: { path: certificate, trustedRoot } };
}

interface PublishOptions {
  readonly version: string;
  readonly registry: string;
  readonly folder: string;
  readonly builds: readonly string[];
  readonly identity: SigningIdentity;
}

function publishOptions(): PublishOptions {
  const version = required("version");
  if (version !== versionOfSources()) {
    throw new UsageError(`the version of package.json is ${versionOfSources()}, and --version is ${version}`);
  }
  return {
    version,
    registry: required("registry"),
    folder: required("out"),
    builds: required("builds").split(","),
    identity: identityOf(),
  };
}

async function publish(programsFolder: string, options: PublishOptions): Promise<void> {
  const { version, registry, folder, builds, identity } = options;
  const startedAt = new Date().toISOString();
  const { commit, source, ...details } = detailsOf(version);
  if (!values["allow-changes"]) requireSameSources(builds, details);
  const plan: ReleasePlan = { version, registry, details, sources, folder };
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
try {
  if (values.help) console.log(usage);
  else if (command === "images") {
    const out = required("out");
    requireCommitted();
    buildImages(out);
  } else if (command === "publish") {
    const options = publishOptions();
    requireCommitted();
    await publish(script("programs.sh"), options);
  } else throw new UsageError(`the command is "images" or "publish"`);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`error: ${error.message}\n${usage}`);
  process.exitCode = 2;
}
