/** Owns two engine processes, prints their ids, and waits to be killed. */
import { fileURLToPath } from "node:url";
import { ProcessPool } from "../../server/engine/process-pool.ts";

const file = fileURLToPath(new URL("../../server/engine/espeak/main.ts", import.meta.url));
const quiet = { info: () => undefined, warn: () => undefined };
const pool = await ProcessPool.open({ name: "espeak", rate: 22_050, file }, { processes: 2, log: quiet });
process.stdout.write(JSON.stringify(pool.pids()));
