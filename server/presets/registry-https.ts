import { httpGet, isReadable, readResponse, reasonOf } from "../fetch/answers.ts";
import { type DownloadLog, download } from "../fetch/download.ts";
import { FetchFailure, redactUrl } from "../fetch/failure.ts";

/**
 * Fetches packages from registries over HTTPS, for images without the clients of the registries. The address of
 * a registry comes from the variables of its client, so this file contains no address.
 */

export interface HttpsContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: DownloadLog;
  readonly signal: AbortSignal;
}

/** A package of a registry. */
export interface RegistryPackage {
  readonly package: string;
  readonly version: string;
  /** The digest of the package's archive. */
  readonly sha256: string;
}

interface Registry {
  /** The URL without credentials and without a trailing slash. */
  readonly url: string;
  readonly headers: Record<string, string>;
}

/**
 * Downloads a Python wheel into a folder. The index is `PIP_INDEX_URL`, and it has the Simple API (PEP 503 or
 * PEP 691).
 * @returns false if no index is configured.
 * @throws FetchFailure
 */
export async function downloadWheel(
  requested: RegistryPackage,
  folder: string,
  context: HttpsContext,
): Promise<boolean> {
  const registry = registryOf(context.env, "PIP_INDEX_URL");
  if (registry === undefined) return false;
  // PEP 503, "Normalized Names".
  const project = requested.package.replace(/[-_.]+/g, "-").toLowerCase();
  const accept =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
  const page = await read(`${registry.url}/${project}/`, accept, registry, context);
  const links = page.isJson ? linksOfJson(page) : linksOfHtml(page.text);
  const link = links.find(({ sha256 }) => sha256 === requested.sha256);
  if (link === undefined) throw notThere(requested, page.url);
  await downloadArchive(
    { url: urlOf(link.url, page), path: "archive.whl" },
    requested,
    folder,
    registry,
    context,
  );
  return true;
}

/**
 * Downloads an npm package into a folder. The registry is `npm_config_registry`.
 * @returns false if no registry is configured.
 * @throws FetchFailure
 */
export async function downloadTarball(
  requested: RegistryPackage,
  folder: string,
  context: HttpsContext,
): Promise<boolean> {
  const registry =
    registryOf(context.env, "npm_config_registry") ?? registryOf(context.env, "NPM_CONFIG_REGISTRY");
  if (registry === undefined) return false;
  const accept = "application/vnd.npm.install-v1+json, application/json;q=0.5";
  const page = await read(
    `${registry.url}/${requested.package.replace("/", "%2f")}`,
    accept,
    registry,
    context,
  );
  const { versions } = parseJson(page) as {
    versions?: Record<string, { dist?: { tarball?: unknown } | null } | null> | null;
  };
  const tarball = versions?.[requested.version]?.dist?.tarball;
  if (typeof tarball !== "string") throw notThere(requested, page.url);
  await downloadArchive(
    { url: urlOf(tarball, page), path: "archive.tgz" },
    requested,
    folder,
    registry,
    context,
  );
  return true;
}

/** Returns the registry in a variable. Credentials in its URL become a header, because `fetch` rejects them. */
function registryOf(env: HttpsContext["env"], variable: string): Registry | undefined {
  const text = env[variable];
  if (!text) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new FetchFailure(`${variable} is not a URL with https:// or http://; correct it`);
  const url = new URL(text);
  const { username, password } = url;
  url.username = "";
  url.password = "";
  const isSecret = username !== "" || password !== "";
  if (isSecret && isReadable(url.href))
    throw new FetchFailure(
      `${variable} has credentials for plain HTTP, which does not protect them; use https://`,
    );
  return {
    url: url.href.replace(/\/+$/, ""),
    headers: isSecret ? { authorization: basicAuthorization(username, password, variable) } : {},
  };
}

function basicAuthorization(username: string, password: string, variable: string): string {
  try {
    const plain = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Basic ${Buffer.from(plain).toString("base64")}`;
  } catch (cause) {
    throw new FetchFailure(`${variable} has credentials with an invalid percent code; encode "%" as %25`, {
      cause,
    });
  }
}

interface Page {
  readonly url: string;
  readonly text: string;
  readonly isJson: boolean;
}

async function read(
  url: string,
  accept: string,
  { headers }: Registry,
  { signal }: HttpsContext,
): Promise<Page> {
  const response = await httpGet(url, { headers: { ...headers, accept }, signal });
  const text = await readText(response, url);
  const isJson = /[/+]json\b/.test(response.headers.get("content-type") ?? "");
  return { url: response.url, text, isJson };
}

async function readText(response: Response, url: string): Promise<string> {
  try {
    return (await readResponse(response, url)).toString("utf8");
  } catch (cause) {
    if (cause instanceof FetchFailure) throw cause;
    throw new FetchFailure(`${redactUrl(url)} was interrupted: ${reasonOf(cause)}. Check the network`, {
      cause,
    });
  }
}

function parseJson({ text, url }: Pick<Page, "text" | "url">): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch (cause) {
    throw new FetchFailure(`${redactUrl(url)} returned a page that is not JSON; check the registry`, {
      cause,
    });
  }
}

interface Link {
  readonly url: string;
  readonly sha256: string | undefined;
}

function linksOfJson(page: Page): Link[] {
  const { files } = parseJson(page) as { files?: unknown };
  const entries: ({ url?: unknown; hashes?: { sha256?: string } | null } | null)[] = Array.isArray(files)
    ? files
    : [];
  return entries.flatMap((entry) =>
    typeof entry?.url === "string" ? [{ url: entry.url, sha256: entry.hashes?.sha256 }] : [],
  );
}

/** Reads the links of a page of PEP 503. The digest is the fragment of the link. */
function linksOfHtml(text: string): Link[] {
  return [...text.matchAll(/<a\b[^>]*\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')/gi)].map(([, double, single]) => {
    const [url = "", fragment = ""] = (double ?? single ?? "").replaceAll("&amp;", "&").split("#");
    return { url, sha256: /^sha256=([0-9a-f]{64})$/.exec(fragment)?.[1] };
  });
}

/** Returns the URL of a link. @throws FetchFailure if the link is not a URL. */
function urlOf(link: string, page: Page): URL {
  if (URL.canParse(link, page.url)) return new URL(link, page.url);
  throw new FetchFailure(`${redactUrl(page.url)} has a link that is not a URL; check the registry`);
}

function notThere({ package: name, version }: RegistryPackage, url: string): FetchFailure {
  return new FetchFailure(
    `${redactUrl(url)} has no archive of ${name} ${version} with the expected digest; check the registry`,
  );
}

/** Downloads an archive. Its name in the folder is fixed, because the URLs of some registries end with a digest. */
async function downloadArchive(
  { url, path }: { readonly url: URL; readonly path: string },
  { sha256 }: RegistryPackage,
  folder: string,
  registry: Registry,
  { log, signal }: HttpsContext,
): Promise<void> {
  url.hash = "";
  // Only the registry gets its credentials. Archives may be on another host.
  const headers = url.origin === new URL(registry.url).origin ? registry.headers : {};
  const file = { url: url.href, path, sha256, bytes: undefined, headers: () => headers };
  await download(file, { folder, log, signal, tries: 3, pauseMs: 500, idleTimeoutMs: 15_000 });
}
