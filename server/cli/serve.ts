import { once } from "node:events";
import type { ModelKind } from "../../config/contract/models.ts";
import { generatorEnv, env as names, otelEnv, telemetryEnv } from "../../config/contract/names.ts";
import type { Command, Shell } from "../../lib/command-line.ts";
import { startModelTier } from "../model/tier.ts";
import { startApiTier } from "../start/api-tier.ts";
import { readApiSettings, readModelSettings } from "./settings/settings.ts";

const notes = [
  "The settings are environment variables (docs/reference/settings.md lists their defaults):",
  ...[names, otelEnv, telemetryEnv, generatorEnv].flatMap(Object.values<string>).map((name) => `  ${name}`),
].join("\n");

export const apiCommand: Command = {
  name: "api",
  summary: "serve the API tier: API keys, validation, routing, encoding (port 8000)",
  options: {},
  notes,
  async run(shell) {
    const api = await startApiTier(readApiSettings(shell.env));
    await untilStopped(shell);
    await api.stop();
    return 0;
  },
};

export const modelCommands: readonly Command[] = [
  modelCommand("mist", "serve the model tier of mist and mistv2 (port 8080)"),
  modelCommand("arcana", "serve the model tier of arcana (port 8080)"),
];

function modelCommand(tier: ModelKind, summary: string): Command {
  return {
    name: tier,
    summary,
    options: {},
    notes,
    async run(shell) {
      const running = await startModelTier(readModelSettings(tier, shell.env));
      const failed = running.warmed.then(
        () => new Promise<never>(() => undefined),
        (error: unknown) => error,
      );
      const failure = await Promise.race([failed, untilStopped(shell)]);
      await running.stop();
      if (failure !== undefined) throw failure;
      return 0;
    },
  };
}

async function untilStopped({ signal }: Shell): Promise<undefined> {
  if (!signal.aborted) await once(signal, "abort");
  return undefined;
}
