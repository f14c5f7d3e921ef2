import { expect, test } from "vitest";
import { processLayout } from "../../../server/engine/neural/process-layout.ts";

test.each([
  { kind: "piper", cores: 2, layout: [2, 1, 2] },
  { kind: "piper", cores: 16, layout: [4, 4, 8] },
  { kind: "kokoro", cores: 1, layout: [1, 1, 1] },
  { kind: "kokoro", cores: 2, layout: [1, 2, 2] },
  { kind: "kokoro", cores: 16, layout: [4, 4, 4] },
  { kind: "kokoro", cores: 16, wanted: 1, layout: [1, 8, 8] },
  { kind: "kokoro", cores: 2, wanted: 3, layout: [3, 1, 1] },
] as const)(
  "processLayout of $kind on $cores cores is $layout (processes, threads, threads alone)",
  ({ kind, cores, layout, ...options }) => {
    const { processes, threads, threadsAlone } = processLayout(
      kind,
      cores,
      "wanted" in options ? options.wanted : undefined,
    );
    expect([processes, threads, threadsAlone]).toEqual(layout);
  },
);
