import { api, defaultClassAnnotation } from "../config/contract/names.ts";
import {
  type LimitedFields,
  limitedFields,
  type Matching,
  safePodFields,
} from "../operator/classes/limited-fields.ts";
import { uncountedClaims } from "../operator/classes/limits.ts";
import { unsafePath } from "../operator/classes/match-pattern.ts";
import { pinKeys } from "../operator/desired/pods/pinned-template.ts";

/**
 * The ValidatingAdmissionPolicies of the chart. The first policy refuses a TtsDeployment that its class does
 * not allow, with the limits that the operator enforces. Only the operator enforces the sums of a namespace,
 * because a policy sees only one object. The second policy protects statuses and pools, which only the
 * operator may write.
 */

const limits = "params.spec.limits";

/** CEL expressions that compare the value `v` with the pattern `p`, like `match-pattern.ts`. */
const rest = "v.substring(p.size())";
const isRegistry = "!p.contains('/') && (p.contains('.') || p.contains(':') || p == 'localhost')";
const matches: { readonly [M in Matching]: string } = {
  exact: "v == p",
  name: "p.endsWith('*') ? v.startsWith(p.substring(0, p.size() - 1)) : v == p",
  hostname: "v == p || (p.startsWith('*.') && v.endsWith(p.substring(1)))",
  image: `v.startsWith(p) && (p.endsWith('/') || ${rest}.startsWith('/') || (!(${isRegistry}) && ${rest}.matches('^([:@][^/]*)?$')))`,
  url: `v.startsWith(p) && !v.matches(r'${unsafePath}') && (v == p || p.endsWith('/') || ${rest}.startsWith('/') || (p.matches('^https?:') ? ${rest}.matches('^[?#]') : (p.matches('^[a-z0-9]+://[^/]+/.') && ${rest}.matches('^(@|:[^/]*$)'))))`,
};

/** The field that identifies the items of a list in a message. */
const keysOfLists: { readonly [list: string]: string } = { sources: "url" };

interface Check {
  /** A CEL expression for a value `v` that is not allowed. */
  readonly isRefused: string;
  /** A CEL expression for the text after the name of the field. */
  readonly problem: string;
  /** Whether the check applies to the keys of a map. */
  readonly ofKeys?: boolean;
}

/** Returns a CEL expression for the list of problems of the values at a path. */
function problemsAt(path: string, check: Check, base = "object", place = "", depth = 0): string {
  const steps = path.split(".");
  const at = steps.findIndex((step) => step.endsWith("[]"));
  const select = (names: readonly string[]) => `${base}${names.map((name) => `.?${name}`).join("")}`;
  const fieldOf = (names: readonly string[]) =>
    place === "" ? `'${names.join(".")}'` : `${place} + '.${names.join(".")}'`;
  const listed = (values: string, names: readonly string[]) =>
    `${values}.filter(v, ${check.isRefused}).map(v, ${fieldOf(names)} + ${check.problem})`;
  if (at === -1) return listed(check.ofKeys ? `${select(steps)}.orValue({})` : `[?${select(steps)}]`, steps);
  const names = steps.slice(0, at + 1).map((step) => step.replace("[]", ""));
  const items = `${select(names)}.orValue([])`;
  const below = steps.slice(at + 1).join(".");
  if (below === "") return listed(items, names);
  const item = `item${depth}`;
  const key = keysOfLists[names.at(-1) ?? ""] ?? "name";
  const where = `${fieldOf(names)} + '[' + ${item}.${key} + ']'`;
  return `${items}.map(${item}, ${problemsAt(below, check, item, where, depth + 1)}.join('. ')).filter(text, text != '')`;
}

const allowedValues = (limit: string) =>
  `(size(${limits}.${limit}) == 0 ? 'the class allows no value' : 'the class allows ' + ${limits}.${limit}.join(', '))`;

/** Returns an expression for the problems of a limit that is a list. */
function listProblems({ limit, matching, paths, maps = [] }: LimitedFields): string {
  const isRefused = `!${limits}.${limit}.exists(p, ${matches[matching]})`;
  const found = [
    ...paths.map((path) =>
      problemsAt(path, { isRefused, problem: `' is ' + v + ', but ' + ${allowedValues(limit)}` }),
    ),
    ...maps.map((path) =>
      problemsAt(path, {
        isRefused,
        ofKeys: true,
        problem: `' contains ' + v + ', but ' + ${allowedValues(limit)}`,
      }),
    ),
  ];
  return `has(${limits}.${limit}) ? ${found.join(" + ")} : []`;
}

const podTemplates = ["spec.api.podTemplate", "spec.models[].podTemplate"];

const always = "true";

function podTemplateProblems(allowed: "None" | "Safe"): string {
  const safe = safePodFields.map((name) => `'${name}'`).join(", ");
  const found = podTemplates.map((path) =>
    allowed === "None"
      ? problemsAt(path, { isRefused: always, problem: "' is set, but the class allows no podTemplate'" })
      : problemsAt(`${path}.spec`, {
          isRefused: `!(v in [${safe}])`,
          ofKeys: true,
          problem: `'.' + v + ' is set, but the class allows only ${safePodFields.join(", ")}'`,
        }),
  );
  return `has(${limits}.podTemplate) && ${limits}.podTemplate == '${allowed}' ? ${found.join(" + ")} : []`;
}

const profiles = "params.spec.acceleratorProfiles";
const limitsGpus = `has(${limits}.maxGpusPerNamespace)`;

/** The problems of one TtsDeployment, as CEL expressions for lists of texts. */
const problems: { readonly [name: string]: string } = {
  namespaces: `has(${limits}.allowedNamespaces) && !(request.namespace in ${limits}.allowedNamespaces) ? ['metadata.namespace is ' + request.namespace + ', which may not use the class'] : []`,
  ...Object.fromEntries(limitedFields.map((fields) => [fields.limit, listProblems(fields)])),
  podTemplateNone: podTemplateProblems("None"),
  podTemplateSafe: podTemplateProblems("Safe"),
  accelerators: `has(${limits}.accelerators) && ${limits}.accelerators == 'Profiles' ? ${problemsAt("spec.models[].accelerator", { isRefused: always, problem: "' is set, but the class allows only its profiles in acceleratorProfile'" })} : []`,
  claimTemplates: `${limitsGpus} ? ${problemsAt("spec.models[].accelerator.claimTemplateName", { isRefused: always, problem: `' is set, but ${uncountedClaims}'` })} : []`,
  profiles: problemsAt("spec.models[].acceleratorProfile", {
    isRefused: `!${profiles}.exists(p, p.name == v)`,
    problem: `' is ' + v + ', but the profiles of the class are: ' + (size(${profiles}) == 0 ? 'none' : ${profiles}.map(p, p.name).join(', '))`,
  }),
  profilesWithClaims: `${limitsGpus} ? ${problemsAt("spec.models[].acceleratorProfile", {
    isRefused: `${profiles}.exists(p, p.name == v && has(p.accelerator.claimTemplateName))`,
    problem: `' is ' + v + ', which has a claimTemplateName, but ${uncountedClaims}'`,
  })} : []`,
};

const isDefault = `has(params.metadata.annotations) && '${defaultClassAnnotation}' in params.metadata.annotations && params.metadata.annotations['${defaultClassAnnotation}'] == 'true'`;

/** A message of more problems could be longer than the API server allows. */
const mostListed = 8;

/**
 * The policy for TtsDeployments. The API server evaluates it for each class, and `matchConditions` selects the
 * class of the TtsDeployment. If several classes are marked as the default, each of them applies.
 */
const classPolicySpec = {
  // The operator enforces the same limits. An error of the policy must not stop changes of a service.
  failurePolicy: "Ignore",
  paramKind: { apiVersion: api.apiVersion, kind: "TtsClass" },
  matchConstraints: {
    resourceRules: [
      {
        apiGroups: [api.group],
        apiVersions: [api.version],
        operations: ["CREATE", "UPDATE"],
        resources: ["ttsdeployments"],
      },
    ],
  },
  matchConditions: [
    {
      name: "class-of-the-object",
      expression: `has(object.spec.className) ? object.spec.className == params.metadata.name : ${isDefault}`,
    },
    {
      name: "spec-changed",
      expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
    },
  ],
  variables: [
    ...Object.entries(problems).map(([name, expression]) => ({ name, expression })),
    {
      name: "problems",
      expression: Object.keys(problems)
        .map((name) => `variables.${name}`)
        .join(" + "),
    },
  ],
  validations: [
    {
      expression: "size(variables.problems) == 0",
      message: "The TtsClass does not allow the spec.",
      messageExpression: `'TtsClass ' + params.metadata.name + ' does not allow the spec: ' + (size(variables.problems) > ${mostListed} ? variables.problems[0] + '. There are more problems.' : variables.problems.join('. ') + '.')`,
    },
  ],
};

const classPolicyBindingSpec = {
  paramRef: { selector: {}, parameterNotFoundAction: "Allow" },
  validationActions: ["Deny"],
};

/** Returns the policy that protects statuses and pools. `account` is the user name of the operator. */
const operatorFieldsSpec = (account: string) => ({
  failurePolicy: "Fail",
  matchConstraints: {
    resourceRules: [
      {
        apiGroups: [api.group],
        apiVersions: [api.version],
        operations: ["CREATE", "UPDATE"],
        resources: ["ttsdeployments/status", "ttsmodelpools", "ttsmodelpools/status"],
      },
    ],
  },
  matchConditions: [
    { name: "not-the-operator", expression: `request.userInfo.username != '${account}'` },
    {
      name: "not-an-administrator-of-classes",
      expression: `!authorizer.group('${api.group}').resource('ttsclasses').check('update').allowed()`,
    },
  ],
  variables: [
    {
      name: "isStatus",
      expression: "has(request.subResource) && request.subResource == 'status'",
    },
  ],
  validations: [
    {
      expression: "!variables.isStatus",
      message:
        "Only the operator writes the status, which contains the spec that a TtsClass accepted. Accounts that may update TtsClasses are exempt.",
    },
    {
      expression: "variables.isStatus || request.operation != 'CREATE'",
      message:
        "Only the operator creates TtsModelPools. Add the model to spec.models of a TtsDeployment. Accounts that may update TtsClasses are exempt.",
    },
    {
      expression: "variables.isStatus || request.operation == 'CREATE' || object.spec == oldObject.spec",
      message:
        "Only the operator changes the spec of a TtsModelPool. Change the TtsDeployment, or use kubectl scale. Accounts that may update TtsClasses are exempt.",
    },
    {
      expression: `variables.isStatus || request.operation == 'CREATE' || [${pinKeys.map((key) => `'${key}'`).join(", ")}].all(key, object.metadata.?annotations[?key].orValue('') == oldObject.metadata.?annotations[?key].orValue(''))`,
      message:
        "Only the operator changes the stored pod template of a TtsModelPool. Accounts that may update TtsClasses are exempt.",
    },
  ],
});

const operatorFieldsBindingSpec = { validationActions: ["Deny"] };

export interface PolicyObject {
  readonly kind: "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding";
  readonly name: string;
  readonly spec: object;
}

/** Returns a policy and its binding, which have the same name. */
export function withBinding(name: string, spec: object, binding: object): PolicyObject[] {
  return [
    { kind: "ValidatingAdmissionPolicy", name, spec },
    { kind: "ValidatingAdmissionPolicyBinding", name, spec: { policyName: name, ...binding } },
  ];
}

/**
 * Returns the policies for classes and their bindings. `account` is the user name of the operator, and `operator`
 * is the name of its objects.
 */
export function classPolicies(account: string, operator: string): PolicyObject[] {
  return [
    ...withBinding(`${operator}-class`, classPolicySpec, classPolicyBindingSpec),
    ...withBinding(`${operator}-operator-fields`, operatorFieldsSpec(account), operatorFieldsBindingSpec),
  ];
}
