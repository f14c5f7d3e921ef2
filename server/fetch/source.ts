import { FetchFailure } from "./failure.ts";

/** The address of model files. */
export type Source =
  | { readonly kind: "http"; readonly url: string }
  | { readonly kind: "s3"; readonly bucket: string; readonly key: string }
  /** Without `path`, all files of the repository are fetched. */
  | {
      readonly kind: "hf";
      readonly repository: string;
      readonly revision: string;
      readonly path: string | undefined;
    }
  | {
      readonly kind: "oci";
      readonly registry: string;
      readonly repository: string;
      /** A tag, or a digest in the form `sha256:…`. */
      readonly reference: string;
    };

const forms =
  "https://HOST/PATH, s3://BUCKET/KEY, hf://OWNER/REPOSITORY[@REVISION][/PATH] or oci://REGISTRY/REPOSITORY[:TAG|@DIGEST]";

/**
 * Parses the address of a source.
 * @throws FetchFailure that names the allowed forms.
 */
export function parseSource(text: string): Source {
  const [, scheme = "", rest = ""] = /^([a-z0-9]+):\/\/(.+)$/.exec(text) ?? [];
  const source = readers[scheme]?.(rest, text);
  if (source === undefined)
    throw new FetchFailure(`the source ${withoutSecrets(text)} is invalid; it must be ${forms}`);
  return source;
}

const readers: Record<string, (rest: string, text: string) => Source | undefined> = {
  https: readHttp,
  http: readHttp,
  s3: readS3,
  hf: readHuggingFace,
  oci: readOci,
};

function readHttp(_rest: string, text: string): Source | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.pathname.endsWith("/")) return undefined;
  if (url.username !== "" || url.password !== "")
    throw new FetchFailure(
      "the source must not contain a user name or a password; put them into the Secret of secretRef",
    );
  return { kind: "http", url: text };
}

function readS3(rest: string): Source | undefined {
  const [, bucket, key] = /^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\/(.*[^/])$/.exec(rest) ?? [];
  return bucket === undefined || key === undefined ? undefined : { kind: "s3", bucket, key };
}

function readHuggingFace(rest: string): Source | undefined {
  const form = /^([\w.-]+\/[\w.-]+)(?:@([\w.-]+))?(?:\/(.*[^/]))?$/;
  const [, repository, revision = "main", path] = form.exec(rest) ?? [];
  return repository === undefined ? undefined : { kind: "hf", repository, revision, path };
}

function readOci(rest: string): Source | undefined {
  const form = /^([\w.-]+(?::\d+)?)\/([a-z0-9._/-]+?)(?::([\w][\w.-]{0,127})|@(sha256:[0-9a-f]{64}))?$/;
  const [, registry, repository, tag = "latest", digest] = form.exec(rest) ?? [];
  if (registry === undefined || repository === undefined) return undefined;
  return { kind: "oci", registry, repository, reference: digest ?? tag };
}

function withoutSecrets(text: string): string {
  return JSON.stringify(text.replace(/[?#].*$/, "").replace(/\/\/[^/@]*@/, "//"));
}
