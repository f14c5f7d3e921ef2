import type { ObservedDeployment } from "../facts/observed.ts";
import type { ConditionState } from "./conditions.ts";

export const operatorConflict = "OperatorConflict";

/** Only while another operator serves this namespace too. */
export function operatorConflictFinding({ rival }: ObservedDeployment): ConditionState[] {
  if (rival === undefined) return [];
  const [first, second] = rival.names;
  const message = `Two operators serve this namespace, by their Leases ${first} and ${second}: the first goes on, the second waits. Give each namespaces of its own (watchNamespaces), or uninstall one.`;
  return [{ type: "SoleOperator", status: "False", reason: operatorConflict, message }];
}
