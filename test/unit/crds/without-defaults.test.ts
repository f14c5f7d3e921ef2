import { Type } from "typebox";
import { expect, it } from "vitest";
import { TtsModelPoolSpecSchema } from "../../../crds/tts-model-pool.ts";
import { withoutDefaults } from "../../../crds/without-defaults.ts";
import { ttsModelPool } from "../../support/operator/observed.ts";

it("withoutDefaults removes the defaults of a pool", () => {
  expect(withoutDefaults(TtsModelPoolSpecSchema, ttsModelPool().spec)).toEqual({
    deployment: "demo",
    pool: "mist",
    kind: "mist",
  });
  const changed = ttsModelPool({ drain: { maxStreamSeconds: 9 }, accelerator: {}, rollout: { maxSurge: 2 } });
  expect(withoutDefaults(TtsModelPoolSpecSchema, changed.spec)).toMatchObject({
    drain: { maxStreamSeconds: 9 },
    accelerator: {},
    rollout: { maxSurge: 2 },
  });
});

it("withoutDefaults returns the same for an old object after the schema gets a field with a default", () => {
  const before = Type.Object({ a: Type.Object({ b: Type.Integer({ default: 1 }) }, { default: {} }) });
  const after = Type.Object({
    a: Type.Object({ b: Type.Integer({ default: 1 }), c: Type.String({ default: "new" }) }, { default: {} }),
    d: Type.Object({ e: Type.Boolean({ default: true }) }, { default: { e: true } }),
  });
  const old = { a: { b: 2 } };
  const filled = { a: { b: 2, c: "new" }, d: { e: true } };
  expect(withoutDefaults(after, filled)).toEqual(withoutDefaults(before, old));
  expect(withoutDefaults(after, { ...filled, a: { b: 1, c: "new" } })).toEqual({});
});

it("withoutDefaults keeps values without a schema", () => {
  expect(withoutDefaults(Type.Object({}), { x: [1, { y: null }] })).toEqual({ x: [1, { y: null }] });
});
