import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { acceptedTokensKey } from "../../../config/contract/names.ts";
import { AcceptedTokens } from "../../../server/model/access.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("tokens");

describe("the accepted tokens of a model tier", () => {
  it("admit all concurrent requests before the tokens are read for the first time", async () => {
    writeFileSync(join(folder, acceptedTokensKey), "new\nold\n");
    const tokens = new AcceptedTokens({ kind: "folder", path: folder }, (error) => {
      throw error;
    });
    const burst = ["new", "old", "new", "old", "other"];
    const results = await Promise.all(burst.map((token) => tokens.accepts(`Bearer ${token}`)));
    expect(results).toEqual([true, true, true, true, false]);
  });

  it("reject all concurrent requests, and log one error, if they cannot be read", async () => {
    const errors: unknown[] = [];
    const tokens = new AcceptedTokens({ kind: "folder", path: join(folder, "gone") }, (error) =>
      errors.push(error),
    );
    const results = await Promise.all([1, 2, 3].map(() => tokens.accepts("Bearer new")));
    expect(results).toEqual([false, false, false]);
    expect(errors.length).toBe(1);
  });
});
