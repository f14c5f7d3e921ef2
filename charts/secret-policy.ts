import {
  acceptedTokensKey,
  api,
  children,
  fieldManager,
  labels,
  tokenKey,
} from "../config/contract/names.ts";

/**
 * The ValidatingAdmissionPolicy that limits which Secrets the operator may write. RBAC cannot express this
 * limit, because the right to create an object cannot depend on its name, type or labels.
 */

/** The label of the TtsDeployment on a Secret that the operator writes. */
const deployment = `object.metadata.labels['${labels.deployment}']`;
const isManaged = (object: string) =>
  `has(${object}.metadata.labels) && '${labels.managedBy}' in ${object}.metadata.labels && ${object}.metadata.labels['${labels.managedBy}'] == '${fieldManager}'`;
/**
 * Returns a CEL expression that is true if a TtsDeployment controls the object. `more` are further conditions
 * for the variable `owner`.
 */
const isControlled = (object: string, ...more: string[]) => {
  const conditions = [
    "has(owner.controller) && owner.controller",
    "owner.kind == 'TtsDeployment'",
    `owner.apiVersion.startsWith('${api.group}/')`,
    ...more,
  ];
  return `has(${object}.metadata.ownerReferences) && ${object}.metadata.ownerReferences.exists(owner, ${conditions.join(" && ")})`;
};

const validations = [
  {
    expression: `${isManaged("object")} && '${labels.deployment}' in object.metadata.labels`,
    message: `The operator writes only Secrets with the labels ${labels.managedBy}: ${fieldManager} and ${labels.deployment}.`,
  },
  {
    expression: `!has(object.metadata.labels) || !('${labels.deployment}' in object.metadata.labels) || object.metadata.name == ${deployment} + '${children.token("")}'`,
    message: `The operator writes only Secrets whose name is the name of their TtsDeployment with the suffix ${children.token("")}.`,
  },
  {
    expression: isControlled(
      "object",
      "has(object.metadata.labels)",
      `'${labels.deployment}' in object.metadata.labels`,
      `owner.name == ${deployment}`,
    ),
    message: "The operator writes only Secrets that a TtsDeployment controls.",
  },
  {
    expression: "object.type == 'Opaque'",
    message: "The operator writes only Secrets of the type Opaque.",
  },
  {
    expression: `!has(object.data) || object.data.all(key, key in ['${tokenKey}', '${acceptedTokensKey}'])`,
    message: `The operator writes only the entries ${tokenKey} and ${acceptedTokensKey} of a Secret.`,
  },
  {
    expression: `oldObject == null || (${isManaged("oldObject")} && ${isControlled("oldObject")})`,
    message: "The operator changes only Secrets that it created.",
  },
];

/** Returns the specs of the policy and of its binding for the operator with this user name. */
export function secretPolicy(name: string, username: string): { policy: object; binding: object } {
  return {
    policy: {
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: [
          { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["secrets"] },
        ],
      },
      matchConditions: [{ name: "operator", expression: `request.userInfo.username == '${username}'` }],
      validations: validations.map((validation) => ({ ...validation, reason: "Forbidden" })),
    },
    binding: { policyName: name, validationActions: ["Deny"] },
  };
}
