import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readClassFile } from "../../../operator/cli/class-file.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("class-file");

describe("the class file of a namespaced installation", () => {
  it("is the spec of a TtsClass, with the defaults of the CRD", async () => {
    const file = join(folder, "class.json");
    await writeFile(file, '{"acceleratorProfiles": [{"name": "l4", "accelerator": {}}]}');
    expect(await readClassFile(file)).toMatchObject({
      defaults: {},
      acceleratorProfiles: [{ accelerator: { count: 1, resourceName: "nvidia.com/gpu" } }],
      limits: {},
    });
  });

  it.each([
    [
      "a misspelled limit",
      '{"limits": {"allowedHostname": []}}',
      "contains limits.allowedHostname, which is not a field",
    ],
    [
      "an invalid limit",
      '{"limits": {"podTemplate": "Any"}}',
      "is not the spec of a TtsClass: /limits/podTemplate",
    ],
    ["a file that is not JSON", "limits:", "must be the spec of a TtsClass in JSON"],
  ])("is rejected with %s", async (_what, text, message) => {
    const file = join(folder, "class.json");
    await writeFile(file, text);
    await expect(readClassFile(file)).rejects.toThrow(message);
  });
});
