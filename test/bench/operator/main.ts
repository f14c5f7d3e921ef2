/** `make bench-operator`: the operator beside its twin on controller-runtime; writes docs/benchmarks-operator.md and its plot. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { licenseIssuer } from "../../support/licenses.ts";
import { describeMachine } from "../machine.ts";
import { targetsTable } from "../page.ts";
import { namespaces, openField, openPlot } from "./field.ts";
import { fullCount, nodesFor, operatorPage, operatorTargets, scalePlot } from "./page.ts";
import { type Contender, measureOperators, type Plan } from "./run.ts";

/** What the image's options come to under the chart's memory limit of 256Mi. */
const asInPod = "--max-semi-space-size=4 --max-old-space-size=128";
const root = join(import.meta.dirname, "../../..");
const count = numberOf("COUNT", fullCount);
const plan: Plan = {
  sizes: [...new Set([0.1, 0.25, 0.5, 1].map((share) => Math.max(1, Math.round(count * share))))],
  changes: numberOf("CHANGES", Math.min(200, 2 * count)),
  restSeconds: numberOf("REST", 300),
};

const machine = describeMachine();
const startedMs = performance.now();
const twin = execFileSync(join(root, "test/bench/operator-twin/build.sh"), { encoding: "utf8" }).trim();
const result = await measure();
const rows = operatorTargets(result);
console.log(`\n${targetsTable(rows)}\n`);
if (count === fullCount || process.env.PAGE === "1") {
  writeFileSync(join(root, "docs/benchmarks/operator-scale.svg"), scalePlot(result.contenders));
  writeFileSync(join(root, "docs/benchmarks-operator.md"), operatorPage(machine, plan, result));
  say("docs/benchmarks-operator.md is written");
} else console.log(operatorPage(machine, plan, result));

async function measure() {
  const nodes = nodesFor(count);
  say(`a control plane with ${nodes} nodes, and two fleets of ${count} TtsDeployments`);
  await using field = await openField(nodes);
  const stop = () => {
    // the kernel ends every program with this one, and the next control plane removes what files are left
    process.exit(130);
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const issuer = await licenseIssuer();
  const keysFile = join(field.address.directory, "jwks.json");
  writeFileSync(keysFile, JSON.stringify(issuer.keys));
  const environment = {
    TTS_SERVER_IMAGE: "registry.example/svc-tts/server:0.1.0",
    TTS_LICENSE_KEYS_FILE: keysFile,
  };
  const contenders: Contender[] = [
    {
      plot: await openPlot(field, namespaces.ours),
      program: {
        name: "ours",
        command: [process.execPath, join(root, "operator/main.ts"), "run"],
        environment: { ...environment, NODE_OPTIONS: asInPod, NODE_ENV: "production" },
      },
    },
    {
      plot: await openPlot(field, namespaces.twin),
      program: { name: "twin", command: [twin], environment },
    },
  ];
  // the field stands until then
  return await measureOperators(field, contenders, issuer, plan, say);
}

function numberOf(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`${name} is ${text}; it must be a whole number above zero`);
  process.exit(2);
}

function say(line: string): void {
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${line}`);
}
