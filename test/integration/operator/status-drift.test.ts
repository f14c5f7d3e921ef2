/**
 * Changes the statuses of a TtsDeployment and of its pool like `kubectl patch --subresource=status`. The operator
 * restores every condition and every field, and keeps conditions of other types.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { resourceOf } from "../../../operator/cluster/resources.ts";
import { clusterRequestOrThrow } from "../../support/cluster/cluster-request.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

interface Condition {
  readonly type: string;
  readonly lastTransitionTime: string;
}
type Status = Record<string, unknown> & { readonly conditions: readonly Condition[] };

let house: OperatorHouse;
beforeAll(async () => {
  house = await OperatorHouse.open();
  await house.ready();
  await house.idle();
});
afterAll(() => house[Symbol.asyncDispose]());

const objects = [
  ["TtsDeployment", "demo"],
  ["TtsModelPool", "demo-mist"],
] as const;

async function statusOf(kind: string, name: string): Promise<Status> {
  const { status } = await house.mustGet(kind, name);
  return status as unknown as Status;
}

/** Returns the status as text. The operator keeps the time of a condition whose value does not change. */
function textOf({ conditions, ...rest }: Status, without: readonly string[] = []): string {
  const kept = conditions
    .filter(({ type }) => !without.includes(type))
    .map(({ lastTransitionTime: _, ...condition }) => condition);
  return JSON.stringify({ ...rest, conditions: kept });
}

/** Sends the request of `kubectl patch --subresource=status --type=json`, whose process takes longer to start. */
function patch(kind: string, name: string, operations: object): Promise<unknown> {
  const { apiVersion, plural } = resourceOf(kind);
  return clusterRequestOrThrow(inject("controlPlane"), {
    method: "PATCH",
    path: `/apis/${apiVersion}/namespaces/${house.namespace}/${plural}/${name}/status?fieldManager=kubectl-patch`,
    type: "application/json-patch+json",
    body: operations,
  });
}

describe.each(objects)("a changed status of %s %s", (kind, name) => {
  it("is restored in every field of every condition", async () => {
    const before = await statusOf(kind, name);
    for (const [index, condition] of before.conditions.entries()) {
      const at = `/status/conditions/${index}`;
      const other = (condition as unknown as { status: string }).status === "True" ? "False" : "True";
      const changes = [
        [{ op: "replace", path: `${at}/status`, value: other }],
        [{ op: "replace", path: `${at}/reason`, value: "Theirs" }],
        [{ op: "replace", path: `${at}/message`, value: "theirs" }],
        [{ op: "replace", path: `${at}/type`, value: "Theirs" }],
        [{ op: "remove", path: at }],
      ];
      for (const operations of changes) {
        await patch(kind, name, operations);
        const what = `${condition.type} after ${JSON.stringify(operations)}`;
        await house.until(async () => {
          const now = await statusOf(kind, name);
          const types = now.conditions.map(({ type }) => type);
          return types.includes(condition.type) && sorted(now, ["Theirs"]) === sorted(before);
        }, what);
        await house.idle();
        const foreign = (await statusOf(kind, name)).conditions.findIndex(({ type }) => type === "Theirs");
        if (foreign >= 0) await patch(kind, name, [{ op: "remove", path: `/status/conditions/${foreign}` }]);
      }
    }
  });

  it("is restored in every other field", async () => {
    const before = await statusOf(kind, name);
    for (const [field, value] of Object.entries(before)) {
      if (field === "conditions") continue;
      const changes = [
        [{ op: "remove", path: `/status/${field}` }],
        ...(typeof value === "number"
          ? [[{ op: "replace", path: `/status/${field}`, value: value + 1 }]]
          : []),
      ];
      for (const operations of changes) {
        // The schema requires some fields, so that no client can remove them.
        const rejection = await patch(kind, name, operations).then(
          () => undefined,
          (error: unknown) => String(error),
        );
        if (rejection !== undefined) expect(rejection).toContain("Required value");
        await house.until(
          async () => sorted(await statusOf(kind, name)) === sorted(before),
          `${field} after ${JSON.stringify(operations)}`,
        );
        await house.idle();
      }
    }
  });

  it("keeps a condition of another type", async () => {
    const theirs = {
      type: "Theirs",
      status: "True",
      reason: "Theirs",
      message: "",
      observedGeneration: 1,
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    await patch(kind, name, [{ op: "add", path: "/status/conditions/-", value: theirs }]);
    await house.touch(`${kind} 1`);
    await house.idle();
    expect((await statusOf(kind, name)).conditions.map(({ type }) => type)).toContain("Theirs");
  });
});

/** Returns the status as text, with its conditions in the order of their types. */
function sorted(status: Status, without: readonly string[] = []): string {
  const conditions = status.conditions.toSorted((a, b) => a.type.localeCompare(b.type));
  const fields = Object.entries({ ...status, conditions }).sort(([a], [b]) => a.localeCompare(b));
  return textOf(Object.fromEntries(fields) as Status, without);
}
