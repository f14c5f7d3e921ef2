import {
  acceptedTokensKey,
  api,
  children,
  fieldManager,
  labels,
  tokenKey,
} from "../config/contract/names.ts";

/**
 * The ValidatingAdmissionPolicy that limits what the operator's ServiceAccount may write: only Secrets, or
 * every object. RBAC cannot express these limits, because the right to create an object cannot depend on its
 * name, type, owner or content. A policy cannot limit reads.
 */

export type LimitedWrites = "Secrets" | "All";

interface Validation {
  readonly expression: string;
  readonly message: string;
}

/** The labels of an object as a map, which is empty if the object has no labels. */
const labelsOf = (object: string) => `(has(${object}.metadata.labels) ? ${object}.metadata.labels : {})`;
/** The owner references of an object whose owner is the controller and a custom resource of the operator. */
const controlledBy = (object: string, ...more: string[]) => {
  const conditions = [
    "has(owner.controller) && owner.controller",
    `owner.apiVersion.startsWith('${api.group}/')`,
  ];
  return `(has(${object}.metadata.ownerReferences) && ${object}.metadata.ownerReferences.exists(owner, ${[...conditions, ...more].join(" && ")}))`;
};

const isDeployment = "owner.kind == 'TtsDeployment'";
const ownsToken = `owner.name + '${children.token("")}' == object.metadata.name`;

/** The rules for a Secret that the operator creates or changes. */
const secretRules: readonly Validation[] = [
  {
    expression: `${labelsOf("object")}.exists(key, key == '${labels.managedBy}' && object.metadata.labels[key] == '${fieldManager}')`,
    message: `The operator writes only Secrets with the label ${labels.managedBy}: ${fieldManager}.`,
  },
  {
    expression: `${labelsOf("object")}.exists(key, key == '${labels.deployment}' && object.metadata.labels[key] + '${children.token("")}' == object.metadata.name)`,
    message: `The operator writes only Secrets whose name is the label ${labels.deployment} with the suffix ${children.token("")}.`,
  },
  {
    expression: controlledBy("object", isDeployment, ownsToken),
    message: "The operator writes only Secrets that their TtsDeployment controls.",
  },
  {
    expression: "object.type == 'Opaque'",
    message: "The operator writes only Secrets of the type Opaque.",
  },
  {
    // A server-side apply keeps entries that users added, so the operator can repair such a Secret.
    expression: `!has(object.data) || object.data.all(key, key in ['${tokenKey}', '${acceptedTokensKey}'] || (oldObject != null && has(oldObject.data) && key in oldObject.data && oldObject.data[key] == object.data[key]))`,
    message: `The operator writes only the entries ${tokenKey} and ${acceptedTokensKey} of a Secret.`,
  },
  {
    // The rule does not depend on labels, so the operator can repair the labels of its own Secret.
    expression: `oldObject == null || ${controlledBy("oldObject", isDeployment, ownsToken)}`,
    message: "The operator changes only Secrets that their TtsDeployment controls.",
  },
];

const flagsOfNode = ["hostNetwork", "hostPID", "hostIPC"];
const volumes = "(has(variables.pod.volumes) ? variables.pod.volumes : [])";
const containers =
  "(variables.pod.containers + (has(variables.pod.initContainers) ? variables.pod.initContainers : []))";
const ownServiceAccounts = ["api", "model"].map(
  (tier) => `object.metadata.labels['${labels.deployment}'] + '-${tier}'`,
);

const podVariables = [
  { name: "isDeployment", expression: "request.resource.resource == 'deployments'" },
  { name: "isJob", expression: "request.resource.resource == 'jobs'" },
  {
    name: "hasTemplate",
    expression: "request.operation != 'DELETE' && (variables.isDeployment || variables.isJob)",
  },
  { name: "pod", expression: "variables.hasTemplate ? object.spec.template.spec : null" },
  {
    name: "serviceAccounts",
    expression: `variables.isDeployment && variables.hasTemplate && ${labelsOf("object")}.exists(key, key == '${labels.deployment}') ? [${ownServiceAccounts.join(", ")}] : []`,
  },
];

/** The rules for the pods of Deployments and Jobs. `allowed` is a CEL list of further ServiceAccounts. */
const podRules = (allowed: string): Validation[] => [
  {
    expression: `!variables.hasTemplate || !variables.isDeployment || (has(variables.pod.serviceAccountName) && variables.pod.serviceAccountName in variables.serviceAccounts + ${allowed})`,
    message:
      "Pods may use only the ServiceAccounts of their TtsDeployment, and those of admissionPolicy.serviceAccounts.",
  },
  {
    expression: `!variables.hasTemplate || !variables.isJob || ((!has(variables.pod.serviceAccountName) || variables.pod.serviceAccountName in ['', 'default']) && has(variables.pod.automountServiceAccountToken) && !variables.pod.automountServiceAccountToken && ${volumes}.all(v, !has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(source, !has(source.serviceAccountToken))))`,
    message: "Pods of Jobs may use no ServiceAccount and no token of a ServiceAccount.",
  },
  {
    expression: `!variables.hasTemplate || !(${flagsOfNode.map((flag) => `(has(variables.pod.${flag}) && variables.pod.${flag})`).join(" || ")})`,
    message: "Pods may not use the network, processes or IPC of their node.",
  },
  {
    expression: `!variables.hasTemplate || ${volumes}.all(v, !has(v.hostPath))`,
    message: "Pods may not mount folders of their node.",
  },
  {
    expression: `!variables.hasTemplate || ${containers}.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)`,
    message: "Containers may not be privileged.",
  },
];

const cacheOrPod = "variables.isPod || variables.isCache";
const onlyMetadata = "request.operation == 'UPDATE' && object.spec == oldObject.spec";

/** The rules for every object. */
const objectRules: readonly Validation[] = [
  {
    expression: `${cacheOrPod} || (${controlledBy("variables.before")} && ${controlledBy("variables.after")})`,
    message:
      "The operator may write only objects that a TtsDeployment, TtsModelPool or TtsModelCache controls.",
  },
  {
    expression: `!variables.isPod || (${onlyMetadata})`,
    message: "The operator may change only the annotations and labels of pods.",
  },
  {
    expression: `!variables.isCache || (${onlyMetadata})`,
    message: "The operator may change only the metadata of TtsModelCaches.",
  },
  {
    expression:
      "request.resource.resource != 'roles' || variables.after.rules.all(r, has(r.resources) && r.resources.all(name, name in ['configmaps', 'endpointslices']) && r.verbs.all(verb, verb in ['get', 'list', 'watch']))",
    message: "Roles of API pods may only read ConfigMaps and EndpointSlices.",
  },
  {
    expression:
      "request.resource.resource != 'rolebindings' || (variables.after.roleRef.kind == 'Role' && variables.after.subjects.all(s, s.kind == 'ServiceAccount' && s.namespace == variables.after.metadata.namespace))",
    message: "RoleBindings may only bind Roles to ServiceAccounts of their namespace.",
  },
];

const objectVariables = [
  { name: "before", expression: "request.operation == 'CREATE' ? object : oldObject" },
  { name: "after", expression: "request.operation == 'DELETE' ? oldObject : object" },
  { name: "isPod", expression: "request.resource.group == '' && request.resource.resource == 'pods'" },
  {
    name: "isCache",
    expression: `request.resource.group == '${api.group}' && request.resource.resource == 'ttsmodelcaches'`,
  },
  {
    name: "isWrittenSecret",
    expression:
      "request.resource.group == '' && request.resource.resource == 'secrets' && request.operation != 'DELETE'",
  },
];

const forbidden = (validation: Validation) => ({ ...validation, reason: "Forbidden" });

/**
 * Returns the spec of the policy. `username` is the user name of the operator, and `allowedAccounts` are the
 * names of further ServiceAccounts for pods, separated by commas.
 */
export function writesPolicySpec(
  writes: LimitedWrites,
  { username, allowedAccounts }: { username: string; allowedAccounts: string },
): object {
  const isOperator = { name: "is-the-operator", expression: `request.userInfo.username == '${username}'` };
  const match = (resources: string[], operations: string[], apiGroups: string[], apiVersions: string[]) => ({
    resourceRules: [{ apiGroups, apiVersions, operations, resources }],
  });
  if (writes === "Secrets")
    return {
      failurePolicy: "Fail",
      matchConstraints: match(["secrets"], ["CREATE", "UPDATE"], [""], ["v1"]),
      matchConditions: [isOperator],
      validations: secretRules.map(forbidden),
    };
  const allowed = `'${allowedAccounts}'.split(',').filter(name, name != '')`;
  const ofSecrets = secretRules.map(({ expression, message }) => ({
    expression: `!variables.isWrittenSecret || (${expression})`,
    message,
  }));
  return {
    failurePolicy: "Fail",
    matchConstraints: match(["*"], ["CREATE", "UPDATE", "DELETE"], ["*"], ["*"]),
    matchConditions: [
      isOperator,
      // The policy does not apply to the Lease of the leader election, to events, and to reviews, which are not stored.
      {
        name: "is-not-its-own",
        expression:
          "!(request.resource.resource in ['leases', 'events', 'tokenreviews', 'subjectaccessreviews'])",
      },
    ],
    variables: [...objectVariables, ...podVariables],
    validations: [...objectRules, ...ofSecrets, ...podRules(allowed)].map(forbidden),
  };
}
