import { describe, expect, it } from "vitest";
import { TtsDeploymentSpecSchema } from "../../../crds/tts-deployment.ts";
import { limitedFields } from "../../../operator/classes/limited-fields.ts";

interface Node {
  readonly type?: string;
  readonly properties?: { readonly [name: string]: Node };
  readonly items?: Node;
}

/** Returns the path of every field in a schema, in the notation of `limitedFields`. */
function pathsOf({ properties, items }: Node, path: string): string[] {
  if (items !== undefined) return pathsOf(items, `${path}[]`);
  if (properties === undefined) return [path];
  const below = Object.entries(properties).flatMap(([name, node]) => pathsOf(node, `${path}.${name}`));
  return [path, ...below];
}

const known = pathsOf(TtsDeploymentSpecSchema as Node, "spec");
const pathsOfLimit = (limit: string) =>
  limitedFields.find((fields) => fields.limit === limit)?.paths.toSorted();

describe("the fields that a class limits", () => {
  it.each(limitedFields.flatMap(({ paths, maps = [] }) => [...paths, ...maps]))("%s exists", (path) => {
    expect(known).toContain(path);
  });

  it("include every field that names a Secret", () => {
    const secret = /(secret(Key)?Ref[.]name|secretName|imagePullSecrets\[\][.]name)$/i;
    expect(pathsOfLimit("allowedSecrets")).toEqual(known.filter((path) => secret.test(path)).toSorted());
  });

  it("include every field that names a claim or an image", () => {
    expect(pathsOfLimit("allowedClaims")).toEqual(
      known.filter((path) => path.endsWith("claimName")).toSorted(),
    );
    expect(pathsOfLimit("allowedImages")).toEqual(
      known.filter((path) => /[.](image|imageVolume[.]reference)$/.test(path)).toSorted(),
    );
  });
});
