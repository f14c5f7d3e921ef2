import { allCommand } from "./all.ts";
import { backupCommand } from "./backup.ts";
import { benchCommand } from "./bench.ts";
import { cacheCommand } from "./cache.ts";
import { fetchCommand } from "./fetch.ts";
import { keysCommands } from "./keys.ts";
import { licenseCommands } from "./license.ts";
import { modelsCommands } from "./models.ts";
import { normalizeCommand } from "./normalize.ts";
import { apiCommand, modelCommands } from "./serve.ts";

/** All commands of `svc-tts`, in the order of the help. */
export const commands = [
  apiCommand,
  ...modelCommands,
  allCommand,
  ...licenseCommands,
  ...keysCommands,
  backupCommand,
  fetchCommand,
  cacheCommand,
  ...modelsCommands,
  benchCommand,
  normalizeCommand,
];
