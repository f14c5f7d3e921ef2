/** The provenance of a release, as a predicate of SLSA 1 (https://slsa.dev/spec/v1.0/provenance). */

export interface BuildFacts {
  readonly version: string;
  readonly commit: string;
  readonly source: string;
  /** Base images with their digests. The list is empty if the bases were built from packages. */
  readonly bases: readonly string[];
  /** Identifies the builder, such as the address of a run of a workflow. */
  readonly builder: string;
  readonly startedAt: string;
  readonly endedAt: string;
}

const DIGEST = "@sha256:";

export function provenanceOf(facts: BuildFacts): object {
  return {
    buildDefinition: {
      buildType: `${facts.source}/blob/main/docs/how-to/release.md`,
      externalParameters: { version: facts.version, source: facts.source },
      internalParameters: {},
      resolvedDependencies: [
        { uri: `git+${facts.source}`, digest: { gitCommit: facts.commit } },
        ...facts.bases.map((base) => {
          const [name = base, digest = ""] = base.split(DIGEST);
          return { uri: `docker://${name}`, digest: { sha256: digest } };
        }),
      ],
    },
    runDetails: {
      builder: { id: facts.builder },
      metadata: { startedOn: facts.startedAt, finishedOn: facts.endedAt },
    },
  };
}
