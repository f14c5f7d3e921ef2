import { describe, expect, it } from "vitest";
import { chooseProof } from "../../run/rotation.ts";

const proofs = ["upgrade", "accounts", "keda", "scaling"];
const seeds = Array.from({ length: 8 }, (_, index) => 41 + index);

describe("the long test of a run", () => {
  it("is each of the long tests once in as many consecutive seeds", () => {
    const chosen = seeds.slice(0, 4).map((seed) => chooseProof(proofs, seed, true).proof);
    expect(chosen.toSorted()).toEqual(["accounts", "keda", "scaling", "upgrade"]);
  });

  it("is the same for the same seed, for any order of the files", () => {
    for (const seed of seeds)
      expect(chooseProof(proofs.toReversed(), seed, true)).toEqual(chooseProof(proofs, seed, true));
  });

  it("is not KEDA if KEDA is not built, and the result states the reason", () => {
    const choices = seeds.map((seed) => chooseProof(proofs, seed, false));
    expect(choices.map(({ proof }) => proof)).not.toContain("keda");
    const replaced = seeds.filter((seed) => chooseProof(proofs, seed, true).proof === "keda");
    expect(replaced).toHaveLength(2);
    for (const seed of replaced)
      expect(chooseProof(proofs, seed, false).reason).toContain("the seed chooses keda");
    expect(choices.filter(({ reason }) => reason !== undefined)).toHaveLength(2);
  });
});
