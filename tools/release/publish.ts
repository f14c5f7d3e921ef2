/** Pushes an assembled release to a registry and signs it. */
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { AssembledImage, AssembledRelease, ReleasePlan } from "./assemble.ts";
import type { Programs } from "./programs.ts";
import { type BuildFacts, provenanceOf } from "./provenance.ts";
import type { Signer } from "./signer.ts";

/** An artifact of the registry by digest. */
export interface PublishedArtifact {
  readonly name: string;
  readonly reference: string;
}

/**
 * Publishes a release. The tags of the images are set last, so that an incomplete release has no such tag. Helm
 * pushes a chart with its tag. Throws if the version has been published with other images, because users rely on
 * a published tag.
 * @returns the artifacts, which `release.json` also lists
 */
export async function publishRelease(
  programs: Programs,
  signer: Signer,
  plan: ReleasePlan,
  release: AssembledRelease,
  facts: Omit<BuildFacts, "endedAt">,
  now: () => Date,
): Promise<readonly PublishedArtifact[]> {
  for (const image of release.images) await requireUnpublished(programs, image, plan.version);
  const provenance = join(plan.folder, "provenance.json");
  writeFileSync(provenance, JSON.stringify(provenanceOf({ ...facts, endedAt: now().toISOString() })));
  const artifacts: PublishedArtifact[] = [];
  for (const image of release.images) {
    const reference = await pushImage(programs, image);
    await signImage(signer, image, reference, provenance);
    artifacts.push({ name: image.role, reference });
  }
  for (const chart of release.charts) {
    const reference = await pushChart(programs, plan, chart);
    await signer.sign(reference);
    await signer.attest(reference, "slsaprovenance1", provenance);
    artifacts.push({ name: basename(chart), reference });
  }
  await signer.signFile(release.checksums);
  for (const { reference } of artifacts.slice(0, release.images.length)) {
    await programs.run("crane", ["tag", reference, plan.version]);
  }
  writeFileSync(
    join(plan.folder, "release.json"),
    `${JSON.stringify({ version: plan.version, commit: facts.commit, artifacts }, undefined, 2)}\n`,
  );
  return artifacts;
}

async function requireUnpublished(programs: Programs, image: AssembledImage, version: string): Promise<void> {
  const tagged = `${image.repository}:${version}`;
  // Registries report an unknown tag in different ways. If the registry cannot be reached, the push fails.
  const published = await programs.run("crane", ["digest", tagged]).catch(() => image.digest);
  if (published.trim() !== image.digest) {
    throw new Error(
      `${tagged} exists, and has the digest ${published.trim()} instead of ${image.digest}. Publish another version`,
    );
  }
}

async function pushImage(programs: Programs, image: AssembledImage): Promise<string> {
  const reference = `${image.repository}@${image.digest}`;
  await programs.run("crane", ["push", "--index", image.layout, reference]);
  return reference;
}

async function signImage(
  signer: Signer,
  image: AssembledImage,
  reference: string,
  provenance: string,
): Promise<void> {
  await signer.sign(reference);
  await signer.attest(reference, "slsaprovenance1", provenance);
  for (const { digest, spdx, cyclonedx } of image.platforms) {
    const platform = `${image.repository}@${digest}`;
    await signer.attest(platform, "spdxjson", spdx);
    await signer.attest(platform, "cyclonedx", cyclonedx);
  }
}

/** Pushes a chart, with the tag of its version, to the folder `charts` of the registry. */
async function pushChart(programs: Programs, plan: ReleasePlan, path: string): Promise<string> {
  const repository = `${plan.registry}/charts`;
  const words = isLocal(plan.registry) ? ["--plain-http"] : [];
  await programs.run("helm", ["push", path, `oci://${repository}`, ...words]);
  const name = basename(path, `-${plan.version}.tgz`);
  const digest = await programs.run("crane", ["digest", `${repository}/${name}:${plan.version}`]);
  return `${repository}/${name}@${digest.trim()}`;
}

/** Returns whether the registry is on this machine. Such registries have no TLS. */
const isLocal = (registry: string): boolean =>
  /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$)/.test(registry);
