import { describe, expect, it } from "vitest";
import { Redactor } from "../../../../operator/cli/redact.ts";

const plain = new Redactor([]);

describe("a text", () => {
  it.each([
    ["an API key", "key svc_0123456789abcdefghij in use", "key [redacted] in use"],
    ["a license", "license eyJhbGciOiJFZERTQSJ9.eyJqdGkiOiIxIn0.c2ln ok", "license [redacted] ok"],
    ["a bearer", "authorization: Bearer abc.def-123", "authorization: [redacted] [redacted]"],
    ["the user of a URL", "valkey://user:geheim@cache:6379/0", "valkey://[redacted]@cache:6379/0"],
    ["an assignment", "--password=hunter2 --level=info", "--password=[redacted] --level=info"],
    ["JSON", '{"apiKey":"abcdef","level":30}', '{"apiKey":"[redacted]","level":30}'],
    [
      "a signed URL",
      "https://s3/x?X-Amz-Signature=abcdef12&n=1",
      "https://s3/x?X-Amz-Signature=[redacted]&n=1",
    ],
    [
      "a shared access signature of Azure",
      "https://a.blob.core.windows.net/m/voice.onnx?sv=2024-11-04&sig=ab%2Bcd%3D&se=2027",
      "https://a.blob.core.windows.net/m/voice.onnx?sv=2024-11-04&sig=[redacted]&se=2027",
    ],
    [
      "a key by its form",
      "key hf_abcdefghij, sk-abcdefghij and AKIA0123456789",
      "key [redacted], [redacted] and [redacted]",
    ],
    [
      "a private key",
      "a\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\nb",
      "a\n[redacted]\nb",
    ],
    ["nothing secret", "secretName: tts-keys, Secret ns/license", "secretName: tts-keys, Secret ns/license"],
  ])("does not contain %s", (_what, text, clean) => {
    expect(plain.text(text)).toBe(clean);
  });

  it("contains none of the given values in any encoding", () => {
    const value = 'first "line"\nsecond&line';
    const redactor = new Redactor([value, "abc"]);
    const spelled = [
      value,
      Buffer.from(value).toString("base64"),
      JSON.stringify(value),
      encodeURIComponent("second&line"),
    ];
    for (const text of spelled) {
      expect(redactor.text(`a ${text} b`)).not.toMatch(/first|second|Zmlyc3Q/);
    }
    // too short to differ from an ordinary word
    expect(redactor.text("abc")).toBe("abc");
  });
});

it.each([
  [
    ["--api-key", "0123456789"],
    ["--api-key", "[redacted]"],
  ],
  [
    ["--hf-token", "mine", "--port", "80"],
    ["--hf-token", "[redacted]", "--port", "80"],
  ],
  [
    ["--max-num-batched-tokens", "2048"],
    ["--max-num-batched-tokens", "2048"],
  ],
  [
    ["--no-password", "--verbose"],
    ["--no-password", "--verbose"],
  ],
])("a container's arguments %j lose the value that follows the name of a secret", (args, clean) => {
  expect(plain.object({ args })).toEqual({ args: clean });
});

describe("an object", () => {
  const env = [
    { name: "MY_SETTING", value: "who knows" },
    { name: "SVC_TTS_LOG_LEVEL", value: "debug" },
    { name: "SVC_TTS_API_KEY", value: "in the clear" },
    { name: "FROM", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
  ];
  const cleanEnv = [
    { name: "MY_SETTING", value: "[redacted]" },
    { name: "SVC_TTS_LOG_LEVEL", value: "debug" },
    { name: "SVC_TTS_API_KEY", value: "[redacted]" },
    { name: "FROM", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
  ];

  it("keeps only the values of variables that are settings of svc-tts", () => {
    const template = { spec: { containers: [{ name: "x", env }] } };
    const pool = { spec: { env, podTemplate: JSON.stringify(template) } };
    expect(plain.object(pool)).toEqual({
      spec: {
        env: cleanEnv,
        podTemplate: JSON.stringify({ spec: { containers: [{ name: "x", env: cleanEnv }] } }),
      },
    });
  });

  it("contains neither kubectl's copy, nor fields for programs, nor fields with the name of a secret", () => {
    const metadata = {
      name: "demo",
      managedFields: [{}],
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}", note: "yes" },
    };
    expect(plain.object({ metadata, password: "x", secretName: "keys", replicas: 2 })).toEqual({
      metadata: { name: "demo", annotations: { note: "yes" } },
      password: "[redacted]",
      secretName: "keys",
      replicas: 2,
    });
  });

  it("contains no invalid pod template", () => {
    expect(plain.object({ podTemplate: "{ geheim" })).toEqual({ podTemplate: "[redacted]" });
  });
});
