/**
 * Publishes a release to a real registry, and uses it as a user without a checkout would: with cosign, crane
 * and Helm, by digest. The images are built twice, to compare their digests.
 */
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { ports } from "../../config/contract/names.ts";
import { freeOffset } from "../../tools/bench/common/running-server.ts";
import { type ProgramName, programsIn } from "../../tools/release/programs.ts";
import { signerFor } from "../../tools/release/signer.ts";
import { eventually } from "../support/eventually.ts";
import { folderOfTests } from "../support/folder.ts";
import { ImageRegistry } from "../support/image-registry.ts";
import { Container } from "./container.ts";
import { issuerOfGitHub, workflow, workflowCertificate } from "./workflow-certificate.ts";

interface Published {
  readonly version: string;
  readonly artifacts: readonly { readonly name: string; readonly reference: string }[];
}

const root = join(import.meta.dirname, "../..");
const folder = folderOfTests("release");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const limits = { timeout: 1_500_000, maxBuffer: 1024 * 1024 };
const environment = { ...process.env, COSIGN_PASSWORD: "only for tests", HOME: folder };

let registry: ImageRegistry;
let run: (program: ProgramName, ...words: string[]) => Promise<string>;
let published: Published;
const out = join(folder, "out");
/** `RELEASE_BUILDS` names two folders with results of `make release-images`, which the tests use again. */
const builds = process.env.RELEASE_BUILDS?.split(",") ?? [join(folder, "first"), join(folder, "second")];
const indexOf = (build: string, role: string) =>
  readFileSync(join(build, "images", role, "index.json"), "utf8");

/** Runs the release program. Its caches are those of the user, and other programs have an empty home folder. */
async function release(...words: string[]): Promise<string> {
  const main = join(root, "tools/release/main.ts");
  const env = { ...process.env, COSIGN_PASSWORD: environment.COSIGN_PASSWORD };
  return (await promisify(execFile)(process.execPath, [main, ...words], { ...limits, env })).stdout;
}

const publishOptions = () => [
  ...["--version", version, "--registry", `${registry.address}/svc-tts`, "--out", out],
  // A developer tests a release before the commit.
  ...["--builds", builds[0] ?? "", "--allow-changes"],
];

function referenceOf(name: string): string {
  const reference = published.artifacts.find((artifact) => artifact.name === name)?.reference;
  if (reference === undefined) throw new Error(`release.json has no artifact ${name}`);
  return reference;
}

const charts = ["tts-operator", "tts-deployment"];
const chartReference = (name: string) => referenceOf(`${name}-${version}.tgz`);
const keyOf = (name: string) => join(folder, name, "cosign.key");
/** A test has no transparency log. */
const withoutLogs = ["--insecure-ignore-tlog", "--insecure-ignore-sct"];
const verification = (name: string) => [
  ...["--key", join(folder, name, "cosign.pub"), "--insecure-ignore-tlog"],
];

beforeAll(async () => {
  const { stdout } = await promisify(execFile)(join(root, "tools/release/programs.sh"), limits);
  const programs = programsIn(stdout.trim(), environment);
  run = (program, ...words) => programs.run(program, words);
  registry = await ImageRegistry.start();
  for (const name of ["ours", "foreign"]) {
    mkdirSync(join(folder, name));
    await run("cosign", "generate-key-pair", "--output-key-prefix", join(folder, name, "cosign"));
  }
  for (const build of builds)
    if (!existsSync(join(build, "images"))) await release("images", "--out", build, "--allow-changes");
  await release("publish", ...publishOptions(), "--key", keyOf("ours"));
  published = JSON.parse(readFileSync(join(out, "release.json"), "utf8")) as Published;
});

afterAll(() => registry?.[Symbol.asyncDispose]());

describe("the images", () => {
  it.each(["server", "operator"])("of the %s have the same digests when they are built again", (role) => {
    const [first = "", second = ""] = builds;
    expect(indexOf(first, role)).toContain("sha256:");
    expect(indexOf(second, role)).toBe(indexOf(first, role));
  });

  it.each(["server", "operator"])(
    "of the %s are complete in the registry, at the tag of the version",
    async (role) => {
      const reference = referenceOf(role);
      await run("crane", "validate", "--remote", reference);
      const repository = `${registry.address}/svc-tts/${role}`;
      expect(`${repository}@${(await run("crane", "digest", `${repository}:${version}`)).trim()}`).toBe(
        reference,
      );
      const config = JSON.parse(await run("crane", "config", reference));
      expect(config.config.Labels["org.opencontainers.image.version"]).toBe(version);
      expect(config.config.User).toBe("65532:65532");
    },
  );
});

describe("a signature", () => {
  it.each(["server", "operator"])(
    "of the %s image is accepted with the key of the release only",
    async (role) => {
      await run("cosign", "verify", ...verification("ours"), referenceOf(role));
      await expect(run("cosign", "verify", ...verification("foreign"), referenceOf(role))).rejects.toThrow(
        /cosign/,
      );
    },
  );

  it.each(charts)("of the chart %s is accepted with the key of the release only", async (chart) => {
    await run("cosign", "verify", ...verification("ours"), chartReference(chart));
    await expect(
      run("cosign", "verify", ...verification("foreign"), chartReference(chart)),
    ).rejects.toThrow();
  });

  it("with a certificate is accepted for the identity and the issuer of the workflow only", async () => {
    const certificate = await workflowCertificate(run, folder);
    const copy = `${registry.address}/certified/operator`;
    await run("crane", "copy", referenceOf("operator"), copy);
    const reference = `${copy}@${referenceOf("operator").split("@")[1]}`;
    await signerFor({ run: (program, words) => run(program, ...words) }, certificate.identity, folder).sign(
      reference,
    );
    const verify = (identity: string, issuer: string) =>
      run(
        "cosign",
        "verify",
        "--trusted-root",
        certificate.trustedRoot,
        ...withoutLogs,
        ...[...["--certificate-identity", identity, "--certificate-oidc-issuer", issuer], reference],
      );
    await verify(workflow, issuerOfGitHub);
    const fork = workflow.replace("svc-tts/svc-tts", "another/svc-tts");
    await expect(verify(fork, issuerOfGitHub)).rejects.toThrow("no matching CertificateIdentity");
    await expect(verify(workflow, "https://issuer.example")).rejects.toThrow(
      "no matching CertificateIdentity",
    );
  });

  it("is missing for an image that another person pushed to the same tag", async () => {
    const changed = `${registry.address}/svc-tts/server:changed`;
    await run("crane", "mutate", referenceOf("server"), "--label", "changed=yes", "--tag", changed);
    await expect(run("cosign", "verify", ...verification("ours"), changed)).rejects.toThrow(/signature/);
  });

  it("of the checksums is accepted, and the checksums match the files", async () => {
    const files = join(out, "files");
    const bundle = ["--bundle", join(files, "SHA256SUMS.sigstore.json")];
    await run("cosign", "verify-blob", ...verification("ours"), ...bundle, join(files, "SHA256SUMS"));
    execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: files });
    const listed = readFileSync(join(files, "SHA256SUMS"), "utf8").trim().split("\n").length;
    expect(listed).toBe(readdirSync(files).filter((name) => !name.startsWith("SHA256SUMS")).length);
  });
});

describe("a signed statement", () => {
  /** Returns the predicate of a statement about an artifact. */
  async function predicateOf<T>(type: string, reference: string): Promise<T> {
    const printed = await run(
      "cosign",
      "verify-attestation",
      "--type",
      type,
      ...verification("ours"),
      reference,
    );
    const [line = ""] = printed.trim().split("\n");
    const { payload } = JSON.parse(line) as { payload: string };
    return (JSON.parse(Buffer.from(payload, "base64").toString()) as { predicate: T }).predicate;
  }
  const platformOf = async (role: string) => {
    const index = JSON.parse(await run("crane", "manifest", referenceOf(role)));
    return `${registry.address}/svc-tts/${role}@${index.manifests[0].digest}`;
  };

  it("lists the packages of each image as SPDX and as CycloneDX", async () => {
    const spdx = await predicateOf<{ packages: { name: string }[] }>("spdxjson", await platformOf("server"));
    expect(spdx.packages.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["node", "fastify", "libflite1", "@echogarden/espeak-ng-emscripten"]),
    );
    const cyclonedx = await predicateOf<{ components: { name: string }[] }>(
      "cyclonedx",
      await platformOf("operator"),
    );
    expect(cyclonedx.components.map(({ name }) => name)).toEqual(expect.arrayContaining(["node", "undici"]));
  });

  it("states the commit from which each artifact was built", async () => {
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
    for (const { reference } of published.artifacts) {
      const provenance = await predicateOf<{ buildDefinition: { resolvedDependencies: object[] } }>(
        "slsaprovenance1",
        reference,
      );
      expect(provenance.buildDefinition.resolvedDependencies).toContainEqual(
        expect.objectContaining({ digest: { gitCommit: commit } }),
      );
    }
  });
});

describe("the charts in the registry", () => {
  const kubernetes = ["--kube-version", "1.36.0"];
  const oci = (chart: string) => [
    `oci://${registry.address}/svc-tts/charts/${chart}`,
    "--version",
    version,
    "--plain-http",
  ];

  it.each(charts)("%s has the bytes of the package in the files of the release", async (chart) => {
    const target = join(folder, `pulled-${chart}`);
    mkdirSync(target);
    await run("helm", "pull", ...oci(chart), "--destination", target);
    const digest = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
    const name = `${chart}-${version}.tgz`;
    expect(digest(join(target, name))).toBe(digest(join(out, "files", name)));
  });

  it("start the operator and the server by digest without any value", async () => {
    const rendered = await run("helm", "template", "tts-operator", ...oci("tts-operator"), ...kubernetes);
    const objects = parseAllDocuments(rendered).map((document) => document.toJS());
    const deployment = objects.find((object) => object?.kind === "Deployment");
    const [container] = deployment.spec.template.spec.containers;
    expect(container.image).toBe(referenceOf("operator"));
    expect(JSON.stringify(container)).toContain(referenceOf("server"));
    const test = await run(
      "helm",
      "template",
      "demo",
      ...oci("tts-deployment"),
      ...kubernetes,
      "--show-only",
      "templates/tests/speak.yaml",
    );
    expect(parse(test).spec.containers[0].image).toBe(referenceOf("server"));
  });

  it("contain the CRDs, which the file crds.yaml contains too", async () => {
    const names = (text: string) =>
      parseAllDocuments(text)
        .map((document) => document.toJS())
        .filter((object) => object?.kind === "CustomResourceDefinition")
        .map((object) => object.metadata.name)
        .toSorted();
    const rendered = await run("helm", "template", "tts-operator", ...oci("tts-operator"), ...kubernetes);
    expect(names(rendered)).toHaveLength(4);
    expect(names(readFileSync(join(out, "files/crds.yaml"), "utf8"))).toEqual(names(rendered));
  });
});

describe("the image of the server", () => {
  const compose = parse(readFileSync(join(root, "config/compose.yaml"), "utf8")).services.server as {
    readonly image: string;
    readonly command: readonly string[];
  };

  it("has the version of the release in the file for docker compose", () => {
    expect(compose.image).toBe(`ghcr.io/svc-tts/server:${version}`);
  });

  it("speaks with the command of docker compose, pulled by digest", async () => {
    const offset = await freeOffset();
    const api = ports.api + offset;
    // The test needs no natural voices.
    const words = compose.command.slice(0, compose.command.indexOf("--fetch"));
    await using container = await Container.start(run, referenceOf("server"), folder, { offset, api }, words);
    const key = await eventually(
      "the API key in the output",
      () => /Bearer (svc_\S+)'/.exec(container.output)?.[1],
      { seen: () => container.output },
    );
    const response = await fetch(`http://127.0.0.1:${api}/v1/svc-tts`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", accept: "audio/wav" },
      body: JSON.stringify({ speaker: "alan", modelId: "mist", text: "The container speaks." }),
    });
    expect(response.status).toBe(200);
    expect(
      Buffer.from(await response.arrayBuffer())
        .subarray(0, 4)
        .toString(),
    ).toBe("RIFF");
    expect((await fetch(`http://127.0.0.1:${api}/dashboard/login`)).status).toBe(200);
  });
});
