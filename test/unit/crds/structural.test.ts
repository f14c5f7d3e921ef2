import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { definitions } from "../../../crds/definitions.ts";
import { type Structural, structural } from "../../../crds/structural.ts";

describe("the structural form of a schema", () => {
  it("omits fields with a default from `required`", () => {
    const schema = Type.Object({
      a: Type.Integer({ default: 1 }),
      b: Type.String(),
      c: Type.Optional(Type.Boolean()),
    });
    expect(structural(schema)).toEqual({
      type: "object",
      required: ["b"],
      properties: {
        a: { type: "integer", format: "int32", default: 1 },
        b: { type: "string" },
        c: { type: "boolean" },
      },
    });
  });

  it("converts a record to additionalProperties, and an integer-or-string to the form of Kubernetes", () => {
    const schema = Type.Record(
      Type.String(),
      Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: "%$" })]),
      { maxProperties: 3 },
    );
    expect(structural(schema)).toEqual({
      type: "object",
      maxProperties: 3,
      additionalProperties: {
        "x-kubernetes-int-or-string": true,
        anyOf: [{ type: "integer" }, { type: "string" }],
        minimum: 0,
        pattern: "%$",
      },
    });
  });

  it("adds the type of an enumeration", () => {
    expect(structural(Type.Enum(["a", "b"]))).toEqual({ type: "string", enum: ["a", "b"] });
  });

  it("refuses a keyword that a structural schema cannot express", () => {
    expect(() => structural(Type.Array(Type.String(), { uniqueItems: true }))).toThrow(/uniqueItems/);
    expect(() => structural(Type.Union([Type.Boolean(), Type.String()]))).toThrow(/union/);
  });
});

describe.each(definitions.map((definition) => [definition.spec.names.kind, definition] as const))(
  "the CRD of %s",
  (_kind, definition) => {
    const schema = definition.spec.versions[0]?.schema.openAPIV3Schema as Structural;

    it("is small enough for client-side apply, which copies it into an annotation", () => {
      expect(Buffer.byteLength(stringify(definition))).toBeLessThan(200_000);
    });

    it("describes every field", () => {
      expect([...fieldsOf(schema, "")].filter(([, node]) => !node.description).map(([path]) => path)).toEqual(
        [".metadata"],
      );
    });

    it("limits every list, map and string of the spec, so that its validation rules have a limited cost", () => {
      const spec = (schema.properties as Record<string, Structural>).spec as Structural;
      const unbounded = [...fieldsOf(spec, "spec")].filter(
        ([, node]) =>
          (node.type === "array" && node.maxItems === undefined) ||
          (node.additionalProperties !== undefined && node.maxProperties === undefined) ||
          (node.type === "string" && node.enum === undefined && node.maxLength === undefined),
      );
      expect(unbounded.map(([path]) => path)).toEqual([]);
    });
  },
);

function* fieldsOf(node: Structural, path: string): Generator<[string, Structural]> {
  const properties = (node.properties ?? {}) as Record<string, Structural>;
  for (const [name, child] of Object.entries(properties)) {
    yield [`${path}.${name}`, child];
    yield* fieldsOf(child, `${path}.${name}`);
  }
  if (node.items) yield* fieldsOf(node.items as Structural, `${path}[]`);
  const values = node.additionalProperties as Structural | undefined;
  if (values) yield* fieldsOf(values, `${path}{}`);
}
