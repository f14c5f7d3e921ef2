import { createHash } from "node:crypto";
import { posix } from "node:path";
import { httpGet, isReadable, readResponse, refusal } from "./answers.ts";
import { type AwsCredentials, signedHeaders } from "./aws-signature.ts";
import { FetchFailure, redactUrl } from "./failure.ts";
import type { Source } from "./source.ts";

/** One file to fetch. */
export interface FileToFetch {
  readonly url: string;
  /** Below the cache's folder, with slashes. */
  readonly path: string;
  /** Hexadecimal; absent where nobody tells it. */
  readonly sha256: string | undefined;
  readonly bytes: number | undefined;
  /** Asked for each request: signatures hold for minutes. */
  readonly headers: () => Record<string, string>;
}

/** Environment variables that the Secret of a source may hold. */
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

export interface FetchPlanOptions {
  /** In place of the public service: an S3-compatible store, a mirror of Hugging Face, a registry by HTTP. */
  readonly endpoint: string | undefined;
  /** Of the one file that the source names. */
  readonly sha256: string | undefined;
  /** Where the file goes, or the folder of the files; absent: the source's own name, or the cache's folder. */
  readonly path: string | undefined;
  readonly credentials: Readonly<Partial<Record<(typeof credentialVariables)[number], string>>>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** @throws FetchFailure */
export async function planOf(source: Source, options: FetchPlanOptions): Promise<FileToFetch[]> {
  requireVouching(source, options);
  const files = await filesOf(source, options);
  if (options.sha256 !== undefined && files.length !== 1)
    throw new FetchFailure(`sha256 is that of one file, and the source holds ${files.length}: leave it out`);
  for (const { path } of files) refuseEscape(path);
  return files.map((file) => ({ ...file, sha256: options.sha256 ?? file.sha256 }));
}

/** TLS vouches for what is fetched, or a digest that did not come the same way. */
function requireVouching(source: Source, { sha256, endpoint }: FetchPlanOptions): void {
  const url = source.kind === "http" ? source.url : endpoint;
  if (url === undefined || sha256 !== undefined || !isReadable(url)) return;
  if (source.kind === "oci" && source.reference.startsWith("sha256:")) return;
  throw new FetchFailure(
    `${redactUrl(url)} is plain HTTP, where others can change a file on its way: give its sha256 (name one file, or an artifact by its digest), or use https`,
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

/** A catalogue's names must not lead out of the folder. */
function refuseEscape(path: string): void {
  const normal = posix.normalize(path);
  if (
    path === "" ||
    normal !== path ||
    normal.startsWith("..") ||
    posix.isAbsolute(path) ||
    /[\\\0]/.test(path)
  )
    throw new FetchFailure(`the file name ${JSON.stringify(path)} does not stay in the folder`);
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
      : `${trimmed(endpoint)}/${bucket}`;
  const url = new URL(`${base}/${encoded}`);
  const aws = awsCredentials(credentials);
  return {
    url: url.href,
    path: path ?? posix.basename(key),
    ...unknown,
    headers: () => (aws === undefined ? {} : signedHeaders(url, {}, aws, { region, atMs: now() })),
  };
}

function awsCredentials(found: FetchPlanOptions["credentials"]): AwsCredentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = found;
  if (!accessKeyId && !secretAccessKey) return undefined;
  if (!accessKeyId || !secretAccessKey)
    throw new FetchFailure(
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together: the Secret holds one of them",
    );
  return { accessKeyId, secretAccessKey, sessionToken: found.AWS_SESSION_TOKEN };
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
    url: `${trimmed(endpoint)}/${repository}/resolve/${revision}/${encoded}`,
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

/** All files of one commit, so that a push meanwhile mixes nothing. */
async function repositoryFiles(source: Of<"hf">, options: FetchPlanOptions): Promise<FileToFetch[]> {
  const { endpoint = huggingFace, credentials, signal, path: folder } = options;
  const url = `${trimmed(endpoint)}/api/models/${source.repository}/revision/${source.revision}?blobs=true`;
  const answer = await httpGet(url, { headers: huggingFaceHeaders(credentials), signal });
  const { sha, siblings } = parse<Repository>(await readResponse(answer, url), url);
  if (typeof sha !== "string" || !Array.isArray(siblings))
    throw new FetchFailure(`${redactUrl(url)} answers no list of files`);
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

/** The layers of an artifact, one file each, named by their titles as ORAS writes them (OCI distribution specification 1.1). */
async function artifactFiles(source: Of<"oci">, options: FetchPlanOptions): Promise<FileToFetch[]> {
  const { registry, repository, reference } = source;
  const base = `${trimmed(options.endpoint ?? `https://${registry}`)}/v2/${repository}`;
  const url = `${base}/manifests/${reference}`;
  const { body, authorization } = await readManifest(url, options);
  const digest = `sha256:${createHash("sha256").update(body).digest("hex")}`;
  if (reference.startsWith("sha256:") && reference !== digest)
    throw new FetchFailure(`${redactUrl(url)} is not what its digest says`);
  const { layers } = parse<Artifact>(body, url);
  if (!layers?.length)
    throw new FetchFailure(`${redactUrl(url)} is no artifact with files: name a manifest, not an index`);
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
    `${redactUrl(url)} holds a layer that is no single named file; push files, as \`oras push\` does`,
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

/** The registry says whom to ask for a token (distribution specification, "Token Authentication"), or takes the password itself. */
async function registryAuthorization(
  challenged: Response,
  url: string,
  { OCI_USERNAME: user, OCI_PASSWORD: password }: FetchPlanOptions["credentials"],
  signal: AbortSignal,
): Promise<string> {
  const challenge = challenged.headers.get("www-authenticate") ?? "";
  const basic =
    user && password ? `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` : undefined;
  if (/^basic/i.test(challenge) && basic !== undefined) return basic;
  const fields = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
  if (!/^bearer/i.test(challenge) || !fields.realm || !URL.canParse(fields.realm))
    throw refusal(challenged, url);
  const realm = new URL(fields.realm);
  if (basic !== undefined && !mayHavePassword(realm, new URL(url))) {
    throw new FetchFailure(
      `${redactUrl(url)} asks to send its password to ${realm.origin}, which is another site or plain HTTP; it is sent nowhere`,
    );
  }
  for (const name of ["service", "scope"]) if (fields[name]) realm.searchParams.set(name, fields[name]);
  const answer = await httpGet(realm.href, {
    headers: basic === undefined ? {} : { authorization: basic },
    signal,
  });
  const { token, access_token } = parse<Record<string, string>>(
    await readResponse(answer, realm.href),
    realm.href,
  );
  return `Bearer ${token ?? access_token}`;
}

/** Where a registry has tokens granted: by itself, or over TLS by another host of its site, as auth.docker.io for registry-1.docker.io. */
export function mayHavePassword(realm: URL, registry: URL): boolean {
  if (realm.origin === registry.origin) return true;
  return realm.protocol === "https:" && siteOf(realm.hostname) === siteOf(registry.hostname);
}

/** The last two labels of a name, three where the second last is short, as in `example.co.uk`. An address is a site by itself. */
function siteOf(hostname: string): string {
  if (/^[\d.]+$|^\[/.test(hostname)) return hostname;
  const labels = hostname.split(".");
  return labels.slice((labels.at(-2)?.length ?? 0) <= 3 ? -3 : -2).join(".");
}

function parse<T>(body: Buffer, url: string): T {
  try {
    return JSON.parse(body.toString("utf8")) as T;
  } catch (cause) {
    throw new FetchFailure(`${redactUrl(url)} answers no JSON`, { cause });
  }
}

function trimmed(endpoint: string): string {
  return endpoint.replace(/\/+$/, "");
}
