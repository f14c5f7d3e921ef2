import { pino } from "pino";
import { env as names } from "../../config/contract/names.ts";
import type { Command } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { FetchFailure } from "../fetch/failure.ts";
import { fetchModel } from "../fetch/fetch.ts";
import { credentialVariables } from "../fetch/plan.ts";

export const fetchCommand: Command = {
  name: "fetch",
  summary:
    "download model files into a folder: resume interrupted downloads, verify digests, and keep existing files",
  options: {
    source: { value: "URL", help: "https://…, s3://…, hf://… or oci://…", required: true },
    into: { value: "FOLDER", help: `target folder; default: the value of ${names.voicesDir}` },
    path: { value: "PATH", help: "path of the file or of the files, relative to the target folder" },
    sha256: { value: "HEX", help: "digest of the file; a file with another digest is deleted" },
    endpoint: {
      value: "URL",
      help: "URL of an S3-compatible store, a mirror of Hugging Face, or a registry",
    },
  },
  notes: `The command reads credentials from the environment variables:\n  ${credentialVariables.join(", ")}`,
  async run(shell, { source = "", into, path, sha256, endpoint }) {
    const folder = into ?? shell.env[names.voicesDir];
    if (folder === undefined || folder === "")
      throw new UsageError(`Set --into FOLDER or ${names.voicesDir}.`);
    if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256))
      throw new UsageError(
        `--sha256 must be 64 hexadecimal digits in lower case; it is ${JSON.stringify(sha256)}.`,
      );
    const log = pino({ level: shell.env[names.logLevel] || "info", name: "fetch", messageKey: "message" });
    const credentials = Object.fromEntries(
      credentialVariables.map((name) => [name, shell.env[name] || undefined]).filter(([, value]) => value),
    );
    try {
      const { signal, now } = shell;
      const done = await fetchModel({
        source,
        folder,
        path,
        sha256,
        endpoint,
        credentials,
        log,
        signal,
        now,
      });
      log.info(done, "the cache is complete");
      return 0;
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error;
      // The kubelet stores the end of the log as the termination message of the container. The operator shows this
      // message.
      shell.complain(error.message);
      return 1;
    }
  },
};
