import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { leasePort } from "../port-lease.ts";

const run = promisify(execFile);

export interface TestPostgres {
  /** Creates an empty database, and returns its URL. */
  newDatabase(): Promise<string>;
  readonly password: string;
  /** The folder of pg_dump and the other programs. */
  readonly programs: string;
  /** Stops PostgreSQL and all its connections immediately, like a failure of its machine. */
  kill(): Promise<void>;
  /** Starts PostgreSQL again on the same port with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const owner = "tts";
const password = "correct horse/battery@staple";
/** The user id of the process. PostgreSQL refuses to run as root. */
const unprivilegedUser = 65534;

/** Starts PostgreSQL on a free port of this machine, with password authentication. */
export async function startPostgres(): Promise<TestPostgres> {
  const programs = await postgresPrograms();
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-postgres-"));
  const data = join(folder, "data");
  const passwordFile = join(folder, "password");
  mkdirSync(data);
  writeFileSync(passwordFile, password);
  if (isRoot())
    for (const path of [folder, data, passwordFile]) chownSync(path, unprivilegedUser, unprivilegedUser);
  await runUnprivileged(join(programs, "initdb"), [
    ...["--pgdata", data, "--username", owner, "--pwfile", passwordFile],
    ...["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"],
  ]);
  const port = await leasePort();
  const launch = () => start(join(programs, "postgres"), data, port);
  let child = await launch();
  let databases = 0;
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGQUIT"); // SIGQUIT also ends the child processes.
    await once(child, "exit");
  };
  return {
    password,
    programs,
    async newDatabase() {
      databases += 1;
      const name = `tts${databases}`;
      const connection = ["--host", "127.0.0.1", "--port", String(port), "--username", owner];
      await run(join(programs, "createdb"), [...connection, name], {
        env: { ...process.env, PGPASSWORD: password },
      });
      return `postgres://${owner}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`;
    },
    kill,
    async restart() {
      await kill();
      child = await launch();
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true });
    },
  };
}

async function start(program: string, data: string, port: number): Promise<ChildProcess> {
  const settings = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"];
  const [command = "", ...words] = unprivileged(program, [
    ...["-D", data],
    ...settings.flatMap((setting) => ["-c", setting]),
  ]);
  const child = spawn(command, words, { stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (text: Buffer) => {
      output += text;
      if (output.includes("database system is ready to accept connections")) resolve();
    });
    child.once("exit", () => reject(new Error(`PostgreSQL did not start: ${output}`)));
    child.once("error", reject);
  });
  return child;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Returns the command that runs a program without root. setpriv replaces itself with the program, so signals
 * reach it.
 */
function unprivileged(program: string, words: readonly string[]): string[] {
  const setpriv = [
    "setpriv",
    "--reuid",
    String(unprivilegedUser),
    "--regid",
    String(unprivilegedUser),
    "--clear-groups",
  ];
  return isRoot() ? [...setpriv, program, ...words] : [program, ...words];
}

async function runUnprivileged(program: string, words: readonly string[]): Promise<void> {
  const [command = "", ...rest] = unprivileged(program, words);
  await run(command, rest, { cwd: "/" });
}

/** Returns the folder of the PostgreSQL programs, and installs them if they are missing. */
export async function postgresPrograms(): Promise<string> {
  if (installed() === undefined) await install();
  const folder = installed();
  if (folder === undefined)
    throw new Error("PostgreSQL is not installed: run sudo apt-get install postgresql");
  return folder;
}

function installed(): string | undefined {
  return globSync("/usr/lib/postgresql/*/bin").toSorted().at(-1);
}

/** Installs the Debian package of PostgreSQL, and prevents it from creating and starting a database. */
async function install(): Promise<void> {
  process.stderr.write("==> installing postgresql\n");
  mkdirSync("/etc/postgresql-common", { recursive: true });
  writeFileSync("/etc/postgresql-common/createcluster.conf", "create_main_cluster = false\n", { flag: "wx" });
  const get = (...words: string[]) =>
    run("apt-get", [...words, "-y", "-qq"], {
      timeout: 240_000,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  const words = ["install", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "postgresql"];
  await get(...words).catch(async () => {
    await get("update");
    await get(...words);
  });
}
