import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Preset, readPreset } from "./schema.ts";

const folder = new URL("./", import.meta.url);
const known = new Map<string, Preset>();

/** Returns the names of all presets: the folders next to this file that contain a `preset.json`. */
export function presetNames(): string[] {
  return readdirSync(fileURLToPath(folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/preset.json`, folder)))
    .map(({ name }) => name)
    .toSorted();
}

/**
 * Returns a preset by its name.
 * @throws PresetProblem if the preset is invalid.
 */
export function loadPreset(id: string): Preset {
  const loaded = known.get(id) ?? readPreset(id, readFileSync(new URL(`${id}/preset.json`, folder), "utf8"));
  known.set(id, loaded);
  return loaded;
}

/** Returns the folder of a preset in this repository, which contains the license texts and the notice. */
export function presetFolder({ id }: Pick<Preset, "id">): URL {
  return new URL(`${id}/`, folder);
}
