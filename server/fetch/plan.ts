import { createHash } from "node:crypto";
import { posix } from "node:path";
import { AwsV4Signer } from "aws4fetch";
import { httpGet, isReadable, readResponse, refusal } from "./answers.ts";
import { FetchFailure, redactUrl } from "./failure.ts";
import type { Source } from "./source.ts";

/** A file to fetch. */
export interface FileToFetch {
  readonly url: string;
  /** The path below the folder of the cache, with slashes. */
  readonly path: string;
  /** The digest in hexadecimal digits. The value is undefined if the source has no digest. */
  readonly sha256: string | undefined;
  readonly bytes: number | undefined;
  /**
   * Creates the headers of a request. This function is called for each request, because signatures are valid
   * only for minutes.
   */
  readonly headers: () => Record<string, string> | Promise<Record<string, string>>;
}

/** The environment variables that the Secret of a source may contain. */
export const credentialVariables = [
  "FETCH_AUTHORIZATION",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_REGION",
  "HF_TOKEN",
  "OCI_USERNAME",
  "OCI_PASSWORD",
] as const;

type SignatureInput = ConstructorParameters<typeof AwsV4Signer>[0];

export interface FetchPlanOptions {
  /**
   * The URL of an S3-compatible store, a mirror of Hugging Face, or a registry. This URL replaces the public
   * service.
   */
  readonly endpoint: string | undefined;
  /** The digest of a source with one file. */
  readonly sha256: string | undefined;
  /**
   * The path of a single file, or the folder of several files. By default, a single file gets its name from
   * the source, and several files are stored in the folder of the cache.
   */
  readonly path: string | undefined;
  readonly credentials: Readonly<Partial<Record<(typeof credentialVariables)[number], string>>>;
  /** Returns the time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/**
 * Lists the files of a source.
 * @throws FetchFailure
 */
export async function planOf(source: Source, options: FetchPlanOptions): Promise<FileToFetch[]> {
  requireProtection(source, options);
  const files = await filesOf(source, options);
  if (options.sha256 !== undefined && files.length !== 1)
    throw new FetchFailure(
      `sha256 requires a source with one file, and the source has ${files.length} files; remove sha256`,
    );
  for (const { path } of files) requireInside(path);
  return files.map((file) => ({ ...file, sha256: options.sha256 ?? file.sha256 }));
}

/** Requires that a file is protected by TLS, or by a digest from another channel. */
function requireProtection(source: Source, { sha256, endpoint }: FetchPlanOptions): void {
  const url = source.kind === "http" ? source.url : endpoint;
  if (url === undefined || sha256 !== undefined || !isReadable(url)) return;
  if (source.kind === "oci" && source.reference.startsWith("sha256:")) return;
  throw new FetchFailure(
    `${redactUrl(url)} is plain HTTP, which does not protect the file; add its sha256 (for one file or an artifact), or use https`,
  );
}

function filesOf(source: Source, options: FetchPlanOptions): FileToFetch[] | Promise<FileToFetch[]> {
  switch (source.kind) {
    case "http":
      return [httpFile(source, options)];
    case "s3":
      return [s3File(source, options)];
    case "hf":
      return source.path === undefined
        ? repositoryFiles(source, options)
        : [modelFile(source, source.path, options)];
    case "oci":
      return artifactFiles(source, options);
  }
}

/** Requires that the path of a file stays inside the folder. */
function requireInside(path: string): void {
  const normal = posix.normalize(path);
  if (
    path === "" ||
    normal !== path ||
    normal.startsWith("..") ||
    posix.isAbsolute(path) ||
    /[\\\0]/.test(path)
  )
    throw new FetchFailure(
      `the file name ${JSON.stringify(path)} does not stay in the folder of the cache; use another source`,
    );
}

type Of<K extends Source["kind"]> = Extract<Source, { kind: K }>;
const unknown = { sha256: undefined, bytes: undefined } as const;

function httpFile({ url }: Of<"http">, { path, credentials }: FetchPlanOptions): FileToFetch {
  const { FETCH_AUTHORIZATION: authorization } = credentials;
  const name = decodeURIComponent(posix.basename(new URL(url).pathname));
  return { url, path: path ?? name, ...unknown, headers: () => (authorization ? { authorization } : {}) };
}

function s3File({ bucket, key }: Of<"s3">, options: FetchPlanOptions): FileToFetch {
  const { path, credentials, now, endpoint } = options;
  const region = credentials.AWS_REGION ?? "us-east-1";
  const encoded = key.split("/").map(encodeRfc3986).join("/");
  const base =
    endpoint === undefined
      ? `https://${bucket}.s3.${region}.amazonaws.com`
      : `${withoutTrailingSlash(endpoint)}/${bucket}`;
  const url = new URL(`${base}/${encoded}`);
  const aws = awsCredentials(credentials);
  return {
    url: url.href,
    path: path ?? posix.basename(key),
    ...unknown,
    headers: () => (aws === undefined ? {} : signS3({ url: url.href, region, ...aws }, now())),
  };
}

/**
 * Signs a GET request.
 * @param atMs milliseconds since the epoch.
 * @returns the headers of the request, including the signature.
 */
export async function signS3(request: SignatureInput, atMs: number): Promise<Record<string, string>> {
  const datetime = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const bodySha256 = createHash("sha256").update("").digest("hex");
  const headers = { ...request.headers, "x-amz-content-sha256": bodySha256 };
  const signer = new AwsV4Signer({ ...request, headers, service: "s3", datetime, allHeaders: true });
  return Object.fromEntries((await signer.sign()).headers);
}

function awsCredentials(credentials: FetchPlanOptions["credentials"]) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = credentials;
  if (!accessKeyId && !secretAccessKey) return undefined;
  if (!accessKeyId || !secretAccessKey)
    throw new FetchFailure(
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are required together, and the Secret has only one of them; add the other",
    );
  const { AWS_SESSION_TOKEN: sessionToken } = credentials;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const huggingFace = "https://huggingface.co";

function modelFile(
  { repository, revision }: Of<"hf">,
  name: string,
  { endpoint = huggingFace, path, credentials }: FetchPlanOptions,
): FileToFetch {
  const encoded = name.split("/").map(encodeURIComponent).join("/");
  return {
    url: `${withoutTrailingSlash(endpoint)}/${repository}/resolve/${revision}/${encoded}`,
    path: path ?? posix.basename(name),
    ...unknown,
    headers: () => huggingFaceHeaders(credentials),
  };
}

function huggingFaceHeaders({ HF_TOKEN }: FetchPlanOptions["credentials"]): Record<string, string> {
  return HF_TOKEN ? { authorization: `Bearer ${HF_TOKEN}` } : {};
}

interface Repository {
  readonly sha: string;
  readonly siblings: readonly { rfilename: string; size?: number; lfs?: { sha256?: string } }[];
}

/**
 * Lists the files of a repository. All files come from one commit, so that a concurrent push does not mix
 * versions.
 */
async function repositoryFiles(source: Of<"hf">, options: FetchPlanOptions): Promise<FileToFetch[]> {
  const { endpoint = huggingFace, credentials, signal, path: folder } = options;
  const url = `${withoutTrailingSlash(endpoint)}/api/models/${source.repository}/revision/${source.revision}?blobs=true`;
  const response = await httpGet(url, { headers: huggingFaceHeaders(credentials), signal });
  const { sha, siblings } = parse<Repository>(await readResponse(response, url), url);
  if (typeof sha !== "string" || !Array.isArray(siblings))
    throw new FetchFailure(`${redactUrl(url)} did not return a list of files; check the source`);
  return siblings
    .filter(({ rfilename }) => rfilename !== ".gitattributes")
    .map(({ rfilename, size, lfs }) => ({
      ...modelFile({ ...source, revision: sha }, rfilename, options),
      path: folder === undefined ? rfilename : `${folder}/${rfilename}`,
      bytes: size,
      sha256: lfs?.sha256,
    }));
}

const manifestTypes =
  "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";

interface Artifact {
  readonly layers?: readonly {
    readonly digest: string;
    readonly size: number;
    readonly annotations?: Readonly<Record<string, string>>;
  }[];
}

/**
 * Lists the files of an artifact. Each layer is one file, and the title of the layer is the name of the file,
 * as in artifacts of ORAS (OCI distribution specification 1.1).
 */
async function artifactFiles(source: Of<"oci">, options: FetchPlanOptions): Promise<FileToFetch[]> {
  const { registry, repository, reference } = source;
  const base = `${withoutTrailingSlash(options.endpoint ?? `https://${registry}`)}/v2/${repository}`;
  const url = `${base}/manifests/${reference}`;
  const { body, authorization } = await readManifest(url, options);
  const digest = `sha256:${createHash("sha256").update(body).digest("hex")}`;
  if (reference.startsWith("sha256:") && reference !== digest)
    throw new FetchFailure(`${redactUrl(url)} does not match its digest ${reference}`);
  const { layers } = parse<Artifact>(body, url);
  if (!layers?.length)
    throw new FetchFailure(
      `${redactUrl(url)} is not an artifact with files; use the reference of a manifest, not of an index`,
    );
  return layers.map((layer) => ({
    url: `${base}/blobs/${layer.digest}`,
    path: options.path === undefined ? titleOf(layer, url) : `${options.path}/${titleOf(layer, url)}`,
    sha256: /^sha256:([0-9a-f]{64})$/.exec(layer.digest)?.[1],
    bytes: layer.size,
    headers: () => (authorization === undefined ? {} : { authorization }),
  }));
}

function titleOf({ annotations = {} }: NonNullable<Artifact["layers"]>[number], url: string): string {
  const title = annotations["org.opencontainers.image.title"];
  if (title !== undefined && annotations["io.deis.oras.content.unpack"] !== "true") return title;
  throw new FetchFailure(
    `${redactUrl(url)} contains a layer that is not a single named file; push files, as \`oras push\` does`,
  );
}

async function readManifest(url: string, { credentials, signal }: FetchPlanOptions) {
  const accept = { accept: manifestTypes };
  const first = await httpGet(url, { headers: accept, signal });
  if (first.status !== 401) return { body: await readResponse(first, url), authorization: undefined };
  const authorization = await registryAuthorization(first, url, credentials, signal);
  const second = await httpGet(url, { headers: { ...accept, authorization }, signal });
  return { body: await readResponse(second, url), authorization };
}

/**
 * Returns the authorization for a registry. The registry names its token service (distribution specification,
 * "Token Authentication"), or accepts the password itself.
 */
async function registryAuthorization(
  unauthorized: Response,
  url: string,
  { OCI_USERNAME: user, OCI_PASSWORD: password }: FetchPlanOptions["credentials"],
  signal: AbortSignal,
): Promise<string> {
  const challenge = unauthorized.headers.get("www-authenticate") ?? "";
  const basic =
    user && password ? `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` : undefined;
  if (/^basic/i.test(challenge) && basic !== undefined) return basic;
  const fields = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
  if (!/^bearer/i.test(challenge) || !fields.realm || !URL.canParse(fields.realm))
    throw refusal(unauthorized, url);
  const realm = new URL(fields.realm);
  if (basic !== undefined && !mayHavePassword(realm, new URL(url))) {
    throw new FetchFailure(
      `${redactUrl(url)} requests a token from ${realm.origin}, which is another site or plain HTTP, so the password was not sent; check the registry`,
    );
  }
  for (const name of ["service", "scope"]) if (fields[name]) realm.searchParams.set(name, fields[name]);
  const response = await httpGet(realm.href, {
    headers: basic === undefined ? {} : { authorization: basic },
    signal,
  });
  const { token, access_token } = parse<Record<string, string>>(
    await readResponse(response, realm.href),
    realm.href,
  );
  return `Bearer ${token ?? access_token}`;
}

/**
 * Returns whether a token service may get the password. The service must be the registry itself, or a host of
 * the same site with TLS, such as auth.docker.io for registry-1.docker.io.
 */
export function mayHavePassword(realm: URL, registry: URL): boolean {
  if (realm.origin === registry.origin) return true;
  return realm.protocol === "https:" && siteOf(realm.hostname) === siteOf(registry.hostname);
}

/**
 * Returns the site of a host: the last two labels of its name, or three if the second last is short, as in
 * `example.co.uk`. An IP address is its own site.
 */
function siteOf(hostname: string): string {
  if (/^[\d.]+$|^\[/.test(hostname)) return hostname;
  const labels = hostname.split(".");
  return labels.slice((labels.at(-2)?.length ?? 0) <= 3 ? -3 : -2).join(".");
}

function parse<T>(body: Buffer, url: string): T {
  try {
    return JSON.parse(body.toString("utf8")) as T;
  } catch (cause) {
    throw new FetchFailure(`${redactUrl(url)} did not return JSON; check the source`, { cause });
  }
}

function withoutTrailingSlash(endpoint: string): string {
  return endpoint.replace(/\/+$/, "");
}
