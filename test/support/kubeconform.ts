/** kubeconform's schemas, made from the OpenAPI document of the very Kubernetes that the tests run and from CRDs: nothing is fetched. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

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

/** What `-schema-location` takes. */
export function schemaLocation(folder: string): string {
  return `${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`;
}

/**
 * Writes a schema for every kind into a new folder.
 * @param swagger file of the API server's own OpenAPI 2 document
 * @param crds files of CustomResourceDefinitions
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
  // the API server takes both forms of these two, which OpenAPI 2 cannot say
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

/** As kubeconform asks for it: only the first part of a group. */
function fileName(group: string, version: string, kind: string): string {
  return `${kind.toLowerCase()}${group === "" ? "" : `-${group.split(".")[0]}`}-${version}.json`;
}

async function writeCrd(folder: string, { spec }: Crd): Promise<void> {
  for (const { name, schema } of spec.versions) {
    const whole = strict(schema.openAPIV3Schema);
    // what every object has, and no CRD's schema describes
    whole.properties = {
      ...whole.properties,
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
    };
    await writeFile(join(folder, fileName(spec.group, name, spec.names.kind)), JSON.stringify(whole));
  }
}

/** A field that the schema does not name is an error, where the API server would drop it. */
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

/** A definition and all that it refers to. */
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
