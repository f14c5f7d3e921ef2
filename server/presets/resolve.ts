import { FetchFailure } from "../fetch/failure.ts";
import type { Preset, PresetFile } from "./schema.ts";

/** A file whose digest is known. */
export interface KnownFile extends Pick<PresetFile, "path" | "sources"> {
  readonly bytes: number | undefined;
  readonly sha256: string;
}

/** A preset in which every file has a digest. */
export type InstallablePreset = Omit<Preset, "files" | "engine" | "manifest"> &
  Pick<Preset, "engine" | "manifest"> & { readonly files: readonly KnownFile[] };

/** SHA-256 digests by the path of the file. */
export type Digests = Readonly<Record<string, string>>;

/**
 * Returns whether a user has to state digests, because the project does not know the digest of every file.
 */
export function needsDigests({ files, repository }: Preset): boolean {
  return repository !== undefined || files.some(({ sha256 }) => sha256 === null);
}

/**
 * Requires that the user has accepted a license that restricts commercial use.
 * @throws FetchFailure that names the license.
 */
export function requireAcceptance({ id, license }: Preset, isAccepted: boolean): void {
  if (license.commercial || isAccepted) return;
  throw new FetchFailure(
    `the license of ${id} does not allow commercial use: ${license.name} (${license.url}). ${license.note ?? ""} Read the license, and add --accept-license if you comply with it`,
  );
}

/**
 * Parses the output of `sha256sum`: one line for each file, with the digest and the path.
 * @throws FetchFailure that names the line.
 */
export function readDigests(text: string): Digests {
  const lines = text.split(/\r?\n/u).map((line, i) => ({ line: line.trim(), number: i + 1 }));
  const entries = lines
    .filter(({ line }) => line !== "" && !line.startsWith("#"))
    .map(({ line, number }) => {
      const [, digest = "", name = ""] = /^([0-9a-f]{64})\s+\*?(?:\.\/)?(\S.*)$/u.exec(line) ?? [];
      if (digest !== "" && isInside(name)) return [name, digest] as const;
      throw new FetchFailure(
        `line ${number} of the digests must be 64 hexadecimal digits in lower case and the path of a file, as sha256sum prints them`,
      );
    });
  return Object.fromEntries(entries);
}

function isInside(path: string): boolean {
  return !/^\/|(^|\/)\.{1,2}(\/|$)|[\\\0]/u.test(path);
}

/**
 * Completes a preset with the digests that the user states.
 * @throws FetchFailure that names the files without a digest.
 */
export function withDigests(preset: Preset, digests: Digests): InstallablePreset {
  const { id, files, repository } = preset;
  const listed = files.map((file) => ({ ...file, sha256: file.sha256 ?? digests[file.path] }));
  const known = listed.filter(
    (file): file is PresetFile & { sha256: string } => typeof file.sha256 === "string",
  );
  const others = Object.keys(digests).filter((name) => !files.some(({ path }) => path === name));
  const required = repository?.required.filter((name) => digests[name] === undefined) ?? [];
  const missing = [
    ...listed.filter(({ sha256 }) => sha256 === undefined).map(({ path }) => path),
    ...required,
  ];
  if (missing.length > 0)
    throw new FetchFailure(
      `the digests of these files of ${id} are not known to svc-tts: ${missing.join(", ")}. State them with --digests FILE, in the format of sha256sum`,
    );
  if (others.length > 0 && repository === undefined)
    throw new FetchFailure(`${id} has no file ${others.join(", ")}; remove the line from the digests`);
  const changed = files.find(({ path, sha256 }) => sha256 !== null && (digests[path] ?? sha256) !== sha256);
  if (changed)
    throw new FetchFailure(
      `the digest of ${changed.path} differs from the digest that svc-tts knows for ${id}, ${changed.sha256}; remove the line`,
    );
  const fetched = others.map((path): KnownFile => {
    const url = `${repository?.url.replace(/\/+$/u, "")}/${path.split("/").map(encodeURIComponent).join("/")}`;
    return { path, bytes: undefined, sha256: digests[path] ?? "", sources: [{ kind: "url", url }] };
  });
  return {
    ...preset,
    files: [...known.map((file) => ({ ...file, bytes: file.bytes ?? undefined })), ...fetched],
  };
}
