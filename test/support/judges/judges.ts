/**
 * Runs external programs that validate manifests. They are built on first use from Go modules and Debian
 * packages.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";

const execute = promisify(execFile);
const build = join(import.meta.dirname, "../../judges/build.sh");

let folder: Promise<string> | undefined;

/** Returns the path of a program. The first call builds it, which takes minutes. */
export async function judge(
  name: "kstatus" | "argohealth" | "kube-score" | "helm-unittest",
): Promise<string> {
  folder ??= execute(build, { timeout: 600_000 }).then(({ stdout }) => stdout.trim());
  return join(await folder, name);
}

export interface Verdict {
  readonly status: string;
  readonly message: string;
}

/** Returns the result of the program for each object, in the order of the objects. */
export async function verdictsOf(
  program: "kstatus" | "argohealth",
  args: readonly string[],
  objects: readonly object[],
): Promise<Verdict[]> {
  const child = spawn(await judge(program), args, { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  if (lines.length !== objects.length)
    throw new Error(`${program} returned ${lines.length} results for ${objects.length} objects`);
  return lines.map((line) => {
    const [status = "", message = ""] = line.split("\t");
    return { status, message };
  });
}

/**
 * Runs promtool. If it is not installed, it is unpacked into the cache from the Debian package of Prometheus.
 */
export async function promtool(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return execute(await promtoolPath(), args);
}

async function promtoolPath(): Promise<string> {
  if (existsSync("/usr/bin/promtool")) return "/usr/bin/promtool";
  const cache = join(homedir(), ".cache/svc-tts");
  const folder = join(cache, "promtool");
  const path = join(folder, "usr/bin/promtool");
  if (existsSync(path)) return path;
  process.stderr.write("==> downloading the Debian package prometheus for promtool\n");
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "promtool."));
  await execute("apt-get", ["download", "-qq", "prometheus"], { cwd: work }).catch(async () => {
    await execute("apt-get", ["update", "-qq"]);
    await execute("apt-get", ["download", "-qq", "prometheus"], { cwd: work });
  });
  const [archive = ""] = await readdir(work);
  await execute("dpkg", ["-x", archive, "."], { cwd: work });
  await rename(work, folder).catch(() => rm(work, { recursive: true }));
  return path;
}

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  oneOf?: object[];
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
}

interface Crd {
  readonly kind: string;
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

/** Returns the value of the flag `-schema-location` of kubeconform. */
export function schemaLocation(folder: string): string {
  return `${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`;
}

/**
 * Writes a schema for kubeconform for each kind into a new folder. The schemas come from the OpenAPI document
 * of the API server and from CRDs, so that nothing is downloaded.
 *
 * @param swagger the file with the OpenAPI 2 document of the API server
 * @param crds the files with CustomResourceDefinitions
 */
export async function writeSchemas(folder: string, swagger: string, crds: readonly string[]): Promise<void> {
  await mkdir(folder);
  await writeKubernetes(folder, swagger);
  for (const file of crds) {
    for (const document of parseAllDocuments(await readFile(file, "utf8"))) {
      const crd = document.toJS() as Crd | null;
      if (crd?.kind === "CustomResourceDefinition") await writeCrd(folder, crd);
    }
  }
}

async function writeKubernetes(folder: string, swagger: string): Promise<void> {
  const { definitions } = JSON.parse(await readFile(swagger, "utf8")) as {
    definitions: Record<string, Schema>;
  };
  // The API server accepts strings and numbers for these two types, which OpenAPI 2 cannot express.
  for (const name of ["util.intstr.IntOrString", "api.resource.Quantity"])
    definitions[`io.k8s.apimachinery.pkg.${name}`] = { oneOf: [{ type: "string" }, { type: "number" }] };
  for (const schema of Object.values(definitions)) if (schema.properties) schema.additionalProperties = false;
  for (const [name, schema] of Object.entries(definitions)) {
    for (const { group, version, kind } of schema["x-kubernetes-group-version-kind"] ?? []) {
      const text = JSON.stringify({ $ref: `#/definitions/${name}`, definitions: closure(definitions, name) });
      await writeFile(join(folder, fileName(group, version, kind)), text);
    }
  }
}

/** Returns the name of a schema file. kubeconform expects only the first part of the API group in it. */
function fileName(group: string, version: string, kind: string): string {
  return `${kind.toLowerCase()}${group === "" ? "" : `-${group.split(".")[0]}`}-${version}.json`;
}

async function writeCrd(folder: string, { spec }: Crd): Promise<void> {
  for (const { name, schema } of spec.versions) {
    const whole = strict(schema.openAPIV3Schema);
    // The schema of a CRD does not describe the fields that every object has.
    whole.properties = {
      ...whole.properties,
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
    };
    await writeFile(join(folder, fileName(spec.group, name, spec.names.kind)), JSON.stringify(whole));
  }
}

/** Returns a schema that refuses unknown fields, because the API server would drop them. */
function strict(schema: Schema): Schema {
  if (schema["x-kubernetes-int-or-string"]) return { oneOf: [{ type: "string" }, { type: "integer" }] };
  const { properties, items, additionalProperties } = schema;
  const closed = properties !== undefined && !schema["x-kubernetes-preserve-unknown-fields"];
  return {
    ...schema,
    ...(properties && { properties: mapValues(properties, strict) }),
    ...(items && { items: strict(items) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: strict(additionalProperties) }),
    ...(closed && { additionalProperties: false }),
  };
}

function mapValues(object: Record<string, Schema>, change: (schema: Schema) => Schema) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

/** Returns a definition with all definitions that it references. */
function closure(definitions: Record<string, Schema>, name: string): Record<string, Schema> {
  const needed: Record<string, Schema> = {};
  const open = [name];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const schema = definitions[next];
    if (!schema || needed[next]) continue;
    needed[next] = schema;
    open.push(
      ...[...JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)].map(([, found]) => found ?? ""),
    );
  }
  return needed;
}
