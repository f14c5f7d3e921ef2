import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { leasePort } from "../port-lease.ts";

const run = promisify(execFile);

export interface TestValkey {
  readonly url: string;
  readonly process: ChildProcess;
  /** A client with which tests read the stored data. */
  readonly client: Redis;
  /** Kills the server. */
  kill(): Promise<void>;
  /** Starts the server again on the same port, without data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const servers = ["/usr/bin/valkey-server", "/usr/local/bin/valkey-server", "/usr/bin/redis-server"];
/**
 * The Redis program of the Debian package redis-tools, which starts no service. The program selects its
 * function by its name, so it also works as the server.
 */
const programOfTools = "/usr/bin/redis-check-rdb";

/** Starts Valkey, or the Redis of Debian, on a free port of this machine, without persistence. */
export async function startValkey(options: { readonly password?: string } = {}): Promise<TestValkey> {
  const program = await valkeyProgram();
  const port = await leasePort();
  const auth = options.password === undefined ? "" : `:${options.password}@`;
  const launch = () => start(program, port, options.password);
  let child = await launch();
  const client = new Redis(`redis://${auth}127.0.0.1:${port}`, { protocol: 2, retryStrategy: () => 50 });
  client.on("error", () => undefined); // Tests kill the server on purpose.
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    get process() {
      return child;
    },
    client,
    kill,
    restart: async () => {
      await kill();
      child = await launch();
    },
    stop: async () => {
      client.disconnect();
      await kill();
    },
  };
}

async function start(program: string, port: number, password: string | undefined): Promise<ChildProcess> {
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  if (password !== undefined) options.push("--requirepass", password);
  const child = spawn(program, options, { argv0: "redis-server", stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (text: Buffer) => {
      output += text;
      if (output.includes("Ready to accept connections")) resolve();
    });
    child.once("exit", () => reject(new Error(`Valkey did not start: ${output}`)));
    child.once("error", reject);
  });
  return child;
}

/** Returns the program of Valkey or Redis, and installs it if it is missing. */
export async function valkeyProgram(): Promise<string> {
  for (const path of servers) if (await exists(path)) return path;
  if (!(await exists(programOfTools))) await install();
  return programOfTools;
}

async function install(): Promise<void> {
  process.stderr.write("==> installing redis-tools\n");
  const get = (...words: string[]) => run("apt-get", [...words, "-y", "-qq"], { timeout: 120_000 });
  try {
    await get("install", "redis-tools").catch(async () => {
      await get("update");
      await get("install", "redis-tools");
    });
  } catch (cause) {
    throw new Error("Valkey and Redis are not installed: run sudo apt-get install redis-tools", {
      cause,
    });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
