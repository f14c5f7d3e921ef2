import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { acceptedTokensKey } from "../../../config/contract/names.ts";
import { AcceptedTokens } from "../../../server/model/access.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("tokens");

describe("the tokens of a model tier", () => {
  it("admit all requests of the first burst, not only the first request", async () => {
    writeFileSync(join(folder, acceptedTokensKey), "new\nold\n");
    const tokens = new AcceptedTokens({ kind: "folder", path: folder }, (error) => {
      throw error;
    });
    const burst = ["new", "old", "new", "old", "other"];
    const judged = await Promise.all(burst.map((token) => tokens.accepts(`Bearer ${token}`)));
    expect(judged).toEqual([true, true, true, true, false]);
  });

  it("refuse the whole burst, and log this once, if they cannot be read", async () => {
    const complaints: unknown[] = [];
    const tokens = new AcceptedTokens({ kind: "folder", path: join(folder, "gone") }, (error) =>
      complaints.push(error),
    );
    const judged = await Promise.all([1, 2, 3].map(() => tokens.accepts("Bearer new")));
    expect(judged).toEqual([false, false, false]);
    expect(complaints.length).toBe(1);
  });
});
