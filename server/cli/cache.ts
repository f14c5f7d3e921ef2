import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import {
  type CacheFailure,
  type CachePlan,
  type CacheResult,
  cacheProgressPath,
  longestCacheMessage,
} from "../../config/contract/model-cache.ts";
import { env as names } from "../../config/contract/names.ts";
import type { Command, Shell } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { fillCache, PresetUnknown } from "../cache/fill.ts";
import { FillProgress } from "../cache/progress.ts";
import { FetchFailure } from "../fetch/failure.ts";

/** The command of the pod that fills a TtsModelCache. */
export const cacheCommand: Command = {
  name: "cache fill",
  summary: "fill the volume of a TtsModelCache: the operator runs this command",
  options: {
    plan: { value: "JSON", help: "the preset or the sources, as the operator writes them", required: true },
    into: { value: "FOLDER", help: "folder of the cache", required: true },
    result: { value: "FILE", help: "file for the result, which becomes the termination message" },
    port: { value: "PORT", help: `port that serves the progress at ${cacheProgressPath}` },
  },
  async run(shell, { plan: text = "", into: folder = "", result: file, port }) {
    const plan = readPlan(text);
    const log = pino({ level: shell.env[names.logLevel] || "info", name: "cache", messageKey: "message" });
    const progress = new FillProgress(() => performance.now());
    const server = port === undefined ? undefined : await serveProgress(progress, port, shell);
    if (server !== undefined)
      log.info({ port: (server.address() as AddressInfo).port }, "the progress is served");
    try {
      const { env, signal, now } = shell;
      const filled = await fillCache(plan, { folder, env, log, progress, signal, now });
      log.info(filled, "the cache is complete");
      await report(file, { outcome: "filled", ...filled });
      return 0;
    } catch (error) {
      const failed = failureOf(error, shell.signal);
      if (failed === undefined) throw error;
      await report(file, failed);
      shell.complain(failed.message);
      return 1;
    } finally {
      server?.close();
      server?.closeAllConnections();
    }
  },
};

function readPlan(text: string): CachePlan {
  const wrong = "--plan must be JSON with preset or sources.";
  try {
    const plan = JSON.parse(text) as CachePlan | null;
    if (typeof plan?.preset === "string" || Array.isArray(plan?.sources)) return plan;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new UsageError(wrong);
  }
  throw new UsageError(wrong);
}

function failureOf(
  error: unknown,
  signal: AbortSignal,
): Extract<CacheResult, { outcome: "failed" }> | undefined {
  const outcome = "failed" as const;
  if (signal.aborted) {
    const message = "The pod was stopped. The next attempt resumes the download.";
    return { outcome, reason: "FetchInterrupted", message };
  }
  const system = systemFailure(error);
  if (system !== undefined) return { outcome, ...system };
  if (!(error instanceof FetchFailure)) return undefined;
  const reason = error instanceof PresetUnknown ? "PresetUnknown" : error.problem;
  return { outcome, reason, message: error.message.slice(0, longestCacheMessage) };
}

/** Explains an error of the file system. */
function systemFailure(error: unknown): { reason: CacheFailure; message: string } | undefined {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (["ENOSPC", "EDQUOT"].includes(code))
    return { reason: "DiskFull", message: `the cache is full (${message}); increase its size` };
  if (["EACCES", "EPERM", "EROFS"].includes(code))
    return {
      reason: "FetchFailed",
      message: `the volume cannot be written (${message}); check its access mode and the permissions of its files`,
    };
  if (["EEXIST", "ENOTDIR", "EISDIR", "ENOTEMPTY"].includes(code))
    return {
      reason: "FetchFailed",
      message: `the volume has a file in place of a folder, or a folder in place of a file (${message}); remove it, or change path of the source`,
    };
  return undefined;
}

async function report(file: string | undefined, result: CacheResult): Promise<void> {
  if (file !== undefined) await writeFile(file, JSON.stringify(result));
}

async function serveProgress(progress: FillProgress, port: string, { env }: Shell): Promise<Server> {
  const number = Number(port);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new UsageError(`--port must be an integer from 0 to 65535; it is ${JSON.stringify(port)}.`);
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== cacheProgressPath) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(progress.report));
  });
  await once(server.listen(number, env[names.host] ?? "0.0.0.0"), "listening");
  return server;
}
