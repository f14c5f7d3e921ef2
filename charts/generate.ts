import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { definitions } from "../crds/definitions.ts";
import { structural } from "../crds/structural.ts";
import { TtsDeploymentSpecSchema } from "../crds/tts-deployment.ts";
import { definitionHeader, generatedHeader, toYaml } from "../crds/yaml.ts";
import { rulesOf, userRoles } from "../operator/cluster/permissions.ts";
import { classPolicies, type PolicyObject, withBinding } from "./class-policy.ts";
import { valuesSchemaOf, withoutRequired } from "./values-schema.ts";
import { valuesTable } from "./values-table.ts";
import { type LimitedWrites, writesPolicySpec } from "./writes-policy.ts";

/**
 * Writes the generated parts of the charts: the CRDs, the operator's roles, the schema of `tts-deployment`'s
 * values, and the tables of values in the READMEs. `make generate` runs it; `make verify` fails when a file
 * differs from its source.
 */

const charts = new URL("./", import.meta.url);

/**
 * Returns the template of a CRD with the labels and annotations of the release. Throws if the text contains
 * `{{`, which Helm would interpret.
 */
function crdTemplate(definition: (typeof definitions)[number]): string {
  const { apiVersion, kind, metadata, spec } = definition;
  const body = toYaml({ spec });
  if (body.includes("{{"))
    throw new Error(`${metadata.name} contains "{{", which Helm would interpret as a template.`);
  return `${definitionHeader(spec.names.kind)}
{{- if .Values.crds.enabled }}
apiVersion: ${apiVersion}
kind: ${kind}
metadata:
  name: ${metadata.name}
  labels:
    {{- include "tts-operator.labels" . | nindent 4 }}
  {{- $keep := ternary (dict "helm.sh/resource-policy" "keep") dict .Values.crds.keep }}
  ${annotationsOf(`"root" . "own" $keep`)}
${body}{{- end }}
`;
}

/** Returns the lines that render the annotations of an object if it has any. */
function annotationsOf(context: string): string {
  return `{{- with include "tts-operator.annotations" (dict ${context}) }}{{ . | nindent 2 }}{{ end }}`;
}

type Scope = Parameters<typeof rulesOf>[0];

function ruleLines(...scopes: Scope[]): string {
  return scopes
    .flatMap(rulesOf)
    .map(({ why, ...rule }) => `  # ${why}\n${indent(toYaml([rule]), 2)}`)
    .join("");
}

function indent(text: string, spaces: number): string {
  return text.replaceAll(/^(?=.)/gm, " ".repeat(spaces));
}

function bindingOf(role: "Role" | "ClusterRole", name: string, namespace: string | undefined): string {
  return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ${role}Binding
${metadataOf(name, namespace)}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ${role}
  name: ${name}
subjects:
  - kind: ServiceAccount
    name: {{ include "tts-operator.serviceAccountName" $ }}
    namespace: {{ $.Release.Namespace }}
`;
}

function metadataOf(name: string, namespace: string | undefined): string {
  return `metadata:
  name: ${name}
${namespace === undefined ? "" : `  namespace: ${namespace}\n`}  ${annotationsOf(`"root" $`)}
  labels:
    {{- include "tts-operator.labels" $ | nindent 4 }}`;
}

function roleOf(
  role: "Role" | "ClusterRole",
  name: string,
  namespace: string | undefined,
  rules: string,
): string {
  return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ${role}
${metadataOf(name, namespace)}
rules:
${rules}${bindingOf(role, name, namespace)}`;
}

function rbacTemplate(): string {
  const fullname = `{{ include "tts-operator.fullname" $ }}`;
  return `${generatedHeader} operator/cluster/permissions.ts
{{- if .Values.watchNamespaces }}
{{- range .Values.watchNamespaces }}
${roleOf("Role", fullname, "{{ . }}", ruleLines("workload"))}{{- end }}
{{- else }}
${roleOf("ClusterRole", fullname, undefined, ruleLines("workload", "cluster"))}{{- end }}
${roleOf("Role", `${fullname}-leader`, "{{ $.Release.Namespace }}", ruleLines("own"))}{{- if .Values.metrics.secure }}
${roleOf("ClusterRole", `${fullname}-metrics-{{ $.Release.Namespace }}`, undefined, ruleLines("metrics"))}---
# The right to read the metrics. metrics.readers binds it to accounts.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
${metadataOf(`${fullname}-metrics-reader-{{ $.Release.Namespace }}`, undefined)}
rules:
  - nonResourceURLs: [/metrics]
    verbs: [get]
{{- with .Values.metrics.readers }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
${metadataOf(`${fullname}-metrics-reader-{{ $.Release.Namespace }}`, undefined)}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ${fullname}-metrics-reader-{{ $.Release.Namespace }}
subjects:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
`;
}

/**
 * The roles of users. In a cluster-wide installation they are ClusterRoles that Kubernetes aggregates into its
 * own `admin`, `edit` and `view`. A namespaced installation has Roles, and RoleBindings for the subjects in the
 * values, because it creates no cluster-wide object.
 */
function userRolesTemplate(): string {
  const documents = userRoles.map(({ name, aggregateTo, rules }) => {
    const labels = aggregateTo.map((role) => `    ${aggregationLabel(role)}: "true"\n`).join("");
    return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
${metadataOf(`{{ include "tts-operator.fullname" $ }}-${name}`, undefined)}
${labels}rules:
${indent(toYaml(rules), 2)}`;
  });
  const inNamespaces = userRoles.map(({ name }) => {
    const role = `{{ include "tts-operator.fullname" $ }}-${name}`;
    return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
${metadataOf(role, "{{ . }}")}
rules:
${indent(toYaml(namespacedRules(name)), 2)}{{- with $.Values.userRoles.${name} }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
${metadataOf(role, "{{ $namespace }}")}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ${role}
subjects:
  {{- toYaml . | nindent 2 }}
{{- end }}
`;
  });
  return `${generatedHeader} operator/cluster/permissions.ts
{{- if .Values.userRoles.create }}
{{- if .Values.watchNamespaces }}
{{- range $namespace := .Values.watchNamespaces }}
${inNamespaces.join("")}{{- end }}
{{- else }}
{{- if or .Values.userRoles.view .Values.userRoles.edit }}
{{- fail "userRoles.view and userRoles.edit need watchNamespaces: without it, bind the ClusterRoles view, edit and admin of Kubernetes." }}
{{- end }}
${documents.join("")}{{- end }}
{{- end }}
`;
}

const policyApi = "admissionregistration.k8s.io/v1";

/** Helm expressions that replace these words in generated policies. */
const placeholders = {
  OPERATOR_ACCOUNT: `system:serviceaccount:{{ $.Release.Namespace }}:{{ include "tts-operator.serviceAccountName" $ }}`,
  OPERATOR_NAME: `{{ include "tts-operator.fullname" $ }}`,
  RELEASE_NAMESPACE: "{{ $.Release.Namespace }}",
  MORE_ACCOUNTS: `{{ join "," .Values.admissionPolicy.serviceAccounts }}`,
};

/**
 * Returns policies and bindings for a template. Throws if their text contains `{{`, which Helm would interpret.
 */
function policyDocuments(policies: readonly PolicyObject[]): string {
  const documents = policies.map(({ kind, name, spec }) => {
    const body = toYaml({ spec });
    if (body.includes("{{"))
      throw new Error(`${kind} ${name} contains "{{", which Helm would interpret as a template.`);
    return `---\napiVersion: ${policyApi}\nkind: ${kind}\n${metadataOf(name, undefined)}\n${body}`;
  });
  return Object.entries(placeholders).reduce(
    (text, [word, expression]) => text.replaceAll(word, expression),
    documents.join(""),
  );
}

/** The policies for TtsClasses. A namespaced installation creates no cluster-wide object. */
function classPolicyTemplate(): string {
  const policies = classPolicies("OPERATOR_ACCOUNT", "OPERATOR_NAME");
  return `${generatedHeader} charts/class-policy.ts
{{- if and .Values.classPolicy.create (not .Values.watchNamespaces) }}
${policyDocuments(policies)}{{- end }}
`;
}

/** Returns the policy for the writes of the operator and its binding, in a template or for Kustomize. */
function writesPolicy(
  writes: LimitedWrites,
  { name, username, allowedAccounts }: { name: string; username: string; allowedAccounts: string },
): PolicyObject[] {
  return withBinding(name, writesPolicySpec(writes, { username, allowedAccounts }), {
    validationActions: ["Deny"],
  });
}

/** The policy for the writes of the operator. It is cluster-scoped, so it has the namespace in its name. */
function writesPolicyTemplate(): string {
  const operator = {
    name: "OPERATOR_NAME-writes-RELEASE_NAMESPACE",
    username: "OPERATOR_ACCOUNT",
    allowedAccounts: "MORE_ACCOUNTS",
  };
  return `${generatedHeader} charts/writes-policy.ts
{{- $writes := .Values.admissionPolicy.writes }}
{{- if eq $writes "Auto" }}{{ $writes = ternary "None" "Secrets" (not (empty .Values.watchNamespaces)) }}{{ end }}
{{- if eq $writes "Secrets" }}
${policyDocuments(writesPolicy("Secrets", operator))}{{- else if eq $writes "All" }}
${policyDocuments(writesPolicy("All", operator))}{{- end }}
`;
}

function kustomizePolicies(source: string, policies: readonly PolicyObject[]): string {
  const objects = policies.map(({ kind, name, spec }) =>
    toYaml({ apiVersion: policyApi, kind, metadata: { name }, spec }),
  );
  return `${generatedHeader} ${source}\n${objects.join("---\n")}`;
}

/**
 * Returns the rules of a Role for users. Kubernetes aggregates no Roles, so the Role `edit` also contains the
 * rules of `view`. A rule for a cluster-scoped kind would have no effect.
 */
function namespacedRules(name: string) {
  const included = userRoles.filter((role) => role.name === name || role.name === "view");
  return included.flatMap(({ rules }) => rules).filter(({ resources }) => !resources.includes("ttsclasses"));
}

/** The label by which Kubernetes aggregates a ClusterRole (Kubernetes, "Aggregated ClusterRoles"). */
function aggregationLabel(role: string): string {
  return `rbac.authorization.k8s.io/aggregate-to-${role}`;
}

/**
 * Returns the schema of the values of `tts-deployment`. `spec` has the schema of the CRD, except that the
 * name of the license Secret is optional, because the chart fills in the names of the Secrets that it
 * creates.
 */
function deploymentValuesSchema(): string {
  const spec = valuesSchemaOf(structural(TtsDeploymentSpecSchema));
  const text = (description: string, more = {}) => ({ type: "string", description, ...more });
  const object = (properties: object, more = {}) => ({
    type: "object",
    additionalProperties: false,
    properties,
    ...more,
  });
  const texts = { type: "object", additionalProperties: { type: "string" } };
  const shortName = { maxLength: 40, pattern: "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" };
  const pullSecret = object({ name: text("Name of a Secret.", { minLength: 1 }) }, { required: ["name"] });
  const name = { maxLength: 253, pattern: "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$" };
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Values of the tts-deployment chart",
    ...object({
      name: text("Name of the TtsDeployment.", { maxLength: 40 }),
      nameOverride: text("Suffix of the name of the TtsDeployment.", shortName),
      fullnameOverride: text("Name of the TtsDeployment, if name is empty.", shortName),
      commonLabels: { type: "object", additionalProperties: { type: "string", maxLength: 63 } },
      commonAnnotations: texts,
      labels: texts,
      annotations: texts,
      secrets: object({
        license: text("A signed license."),
        keys: text("A file of API key digests."),
        generateKey: { type: "boolean", description: "Create an API key if there are no other keys." },
      }),
      spec: withoutRequired(spec, ["license", "secretRef", "name"]),
      test: object({
        image: object({
          repository: text("Image name without tag or digest.", {
            pattern: "^[a-z0-9]+([._:/-]+[a-z0-9]+)*$",
          }),
          tag: text("Tag of the image.", { pattern: "^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$" }),
          digest: text("Digest of the image.", { pattern: "^(sha256:[a-f0-9]{64})?$" }),
          pullPolicy: { enum: ["Always", "IfNotPresent", "Never"] },
        }),
        apiKeySecret: object({
          name: text("A Secret.", name),
          key: text("Key in the Secret.", { pattern: "^[-._a-zA-Z0-9]+$" }),
        }),
        modelId: { enum: ["mist", "mistv2", "arcana"] },
        fixedUserIds: { type: "boolean", description: "Run the test's pod as user 65532." },
        speaker: text("A voice.", { minLength: 1 }),
        text: text("Text of the test sentence.", { minLength: 1, maxLength: 500 }),
      }),
      global: {
        description: "Values that this chart shares with other charts of a release.",
        type: "object",
        properties: {
          imageRegistry: text("Registry without a scheme and without a trailing slash.", {
            pattern: "^([a-zA-Z0-9]+([.-]+[a-zA-Z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)?$",
          }),
          imagePullSecrets: {
            type: "array",
            items: { anyOf: [pullSecret, { type: "string", minLength: 1 }] },
          },
        },
      },
    }),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

const system = "svc-tts-system";

/**
 * Returns the operator's roles for Kustomize. `namespace` is the namespace that the operator serves;
 * undefined means every namespace.
 */
function kustomizeRoles(namespace: string | undefined): string {
  const role = (
    kind: "Role" | "ClusterRole",
    name: string,
    where: string | undefined,
    ...scopes: Scope[]
  ) => {
    const metadata = { name, ...(where && { namespace: where }) };
    const rules = scopes.flatMap(rulesOf).map(({ why: _, ...rule }) => rule);
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind, name };
    const subjects = [{ kind: "ServiceAccount", name: "tts-operator", namespace: system }];
    const apiVersion = "rbac.authorization.k8s.io/v1";
    return [
      { apiVersion, kind, metadata, rules },
      { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects },
    ];
  };
  const forUsers = userRoles.map(({ name, aggregateTo, rules }) => {
    const labels = Object.fromEntries(aggregateTo.map((one) => [aggregationLabel(one), "true"]));
    const metadata = { name: `tts-operator-${name}`, labels };
    return { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata, rules };
  });
  const objects = [
    ...(namespace === undefined
      ? role("ClusterRole", "tts-operator", namespace, "workload", "cluster")
      : role("Role", "tts-operator", namespace, "workload")),
    ...role("Role", "tts-operator-leader", system, "own"),
    ...(namespace === undefined ? forUsers : userRoles.map(({ name }) => roleOfUsers(name, namespace))),
  ];
  return `${generatedHeader} operator/cluster/permissions.ts\n${objects.map(toYaml).join("---\n")}`;
}

/** Returns a Role of users for Kustomize. An administrator binds it to users. */
function roleOfUsers(name: string, namespace: string) {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name: `tts-operator-${name}`, namespace },
    rules: namespacedRules(name),
  };
}

function dashboardFiles(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [`grafana/${name}.json`, `dashboards/${name}.json`]));
}

const tableBegin = "<!-- values: made by `make generate` from values.yaml -->\n";
const tableEnd = "<!-- end of values -->";

async function readmeWithValues(chart: string): Promise<string> {
  const read = (file: string) => readFile(new URL(`${chart}/${file}`, charts), "utf8");
  const [before, rest] = (await read("README.md")).split(tableBegin);
  const after = rest?.split(tableEnd)[1];
  if (after === undefined)
    throw new Error(
      `${chart}/README.md has no place for the table of its values: add the lines "${tableBegin.trim()}" and "${tableEnd}".`,
    );
  return `${before}${tableBegin}\n${valuesTable(await read("values.yaml"))}\n${tableEnd}${after}`;
}

async function write(path: string, text: string): Promise<void> {
  await writeFile(new URL(path, charts), text);
  console.log(`wrote ${path} (${Buffer.byteLength(text)} bytes)`);
}

for (const definition of definitions)
  await write(`tts-operator/templates/crds/${definition.spec.names.plural}.yaml`, crdTemplate(definition));
await write("tts-operator/templates/rbac.yaml", rbacTemplate());
await write("tts-operator/templates/user-roles.yaml", userRolesTemplate());
await write("tts-operator/templates/class-policy.yaml", classPolicyTemplate());
await write("tts-deployment/values.schema.json", deploymentValuesSchema());
const kustomize = "../config/kustomize";
await write(`${kustomize}/cluster-wide/rbac.yaml`, kustomizeRoles(undefined));
await write("tts-operator/templates/writes-policy.yaml", writesPolicyTemplate());
const username = `system:serviceaccount:${system}:tts-operator`;
await write(
  `${kustomize}/cluster-wide/class-policy.yaml`,
  kustomizePolicies("charts/class-policy.ts", classPolicies(username, "tts-operator")),
);
await write(
  `${kustomize}/cluster-wide/writes-policy.yaml`,
  kustomizePolicies(
    "charts/writes-policy.ts",
    writesPolicy("Secrets", { name: `tts-operator-writes-${system}`, username, allowedAccounts: "" }),
  ),
);
await write(`${kustomize}/namespaced/rbac.yaml`, kustomizeRoles("speech"));
for (const definition of definitions) {
  const text = `${definitionHeader(definition.spec.names.kind)}\n${toYaml(definition)}`;
  await write(`${kustomize}/crds/${definition.spec.names.plural}.yaml`, text);
}
// A chart can only read files inside its own folder.
await copyFile(
  new URL("tts-operator/files/speak.mjs", charts),
  new URL("tts-deployment/files/speak.mjs", charts),
);
await mkdir(new URL("tts-operator/files/dashboards", charts), { recursive: true });
const monitoring = { "prometheus/rules.yaml": "rules.yaml", ...dashboardFiles("api", "models", "operator") };
for (const [from, to] of Object.entries(monitoring))
  await copyFile(new URL(`../config/${from}`, charts), new URL(`tts-operator/files/${to}`, charts));
for (const chart of ["tts-operator", "tts-deployment"])
  await write(`${chart}/README.md`, await readmeWithValues(chart));
