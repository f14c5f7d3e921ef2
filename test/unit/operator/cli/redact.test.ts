import { describe, expect, it } from "vitest";
import { Redactor } from "../../../../operator/cli/redact.ts";

const redactor = new Redactor([]);

describe("a redacted text", () => {
  it.each([
    ["an API key", "key svc_0123456789abcdefghij in use", "key [redacted] in use"],
    ["a license", "license eyJhbGciOiJFZERTQSJ9.eyJqdGkiOiIxIn0.c2ln ok", "license [redacted] ok"],
    ["a bearer token", "authorization: Bearer abc.def-123", "authorization: [redacted] [redacted]"],
    ["the credentials of a URL", "valkey://user:geheim@cache:6379/0", "valkey://[redacted]@cache:6379/0"],
    ["a password in a flag", "--password=hunter2 --level=info", "--password=[redacted] --level=info"],
    ["a key in JSON", '{"apiKey":"abcdef","level":30}', '{"apiKey":"[redacted]","level":30}'],
    [
      "the signature of a URL",
      "https://s3/x?X-Amz-Signature=abcdef12&n=1",
      "https://s3/x?X-Amz-Signature=[redacted]&n=1",
    ],
    [
      "a shared access signature of Azure",
      "https://a.blob.core.windows.net/m/voice.onnx?sv=2024-11-04&sig=ab%2Bcd%3D&se=2027",
      "https://a.blob.core.windows.net/m/voice.onnx?sv=2024-11-04&sig=[redacted]&se=2027",
    ],
    [
      "keys with a known prefix",
      "key hf_abcdefghij, sk-abcdefghij and AKIA0123456789",
      "key [redacted], [redacted] and [redacted]",
    ],
    [
      "a private key",
      "a\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\nb",
      "a\n[redacted]\nb",
    ],
    [
      "a quoted value with spaces",
      '{"password":"two words","level":30}',
      '{"password":"[redacted]","level":30}',
    ],
    ["a field of AWS", "aws_secret_access_key=wJalrXUtnFEMI", "aws_secret_access_key=[redacted]"],
    ["a key of an Azure account", "AccountKey=abcd1234==;x=1", "AccountKey=[redacted];x=1"],
    ["a passphrase", "passphrase: correct-horse", "passphrase: [redacted]"],
    ["a flag in a shell command", "serve --hf-token mine --port 80", "serve --hf-token [redacted] --port 80"],
    ["the credentials of curl", "curl -u user:geheim https://x", "curl -u [redacted] https://x"],
    ["a token as the user of a URL", "git https://abcdef123@host/x", "git https://[redacted]@host/x"],
    ["a password with a slash", "redis://u:pa/ss@cache:6379", "redis://[redacted]@cache:6379"],
    ["a cookie", "cookie: session=abcd; other=1", "cookie: [redacted]"],
    [
      "a private key in base64",
      `caKey ${Buffer.from("-----BEGIN EC PRIVATE KEY-----\nMHc").toString("base64")} end`,
      "caKey [redacted] end",
    ],
    ["keys of other services", "glpat-abcdefgh12 nvapi-abcdefgh12", "[redacted] [redacted]"],
    [
      "redactions of ports, digests and versions",
      "http://host:8080/pkg@1.0 repo/x@sha256:0123 --max-tokens 200 demo-token",
      "http://host:8080/pkg@1.0 repo/x@sha256:0123 --max-tokens 200 demo-token",
    ],
    [
      "redactions of names of Secrets",
      "secretName: tts-keys, Secret ns/license",
      "secretName: tts-keys, Secret ns/license",
    ],
  ])("does not contain %s", (_what, text, clean) => {
    expect(redactor.text(text)).toBe(clean);
  });

  it("contains no known secret value, in any encoding", () => {
    const value = 'first "line"\nsecond&line';
    const redactor = new Redactor([value, "abc"]);
    const encoded = [
      value,
      Buffer.from(value).toString("base64"),
      JSON.stringify(value),
      encodeURIComponent("second&line"),
    ];
    for (const text of encoded) {
      expect(redactor.text(`a ${text} b`)).not.toMatch(/first|second|Zmlyc3Q/);
    }
    // A value of three characters could be an ordinary word, so it stays.
    expect(redactor.text("abc")).toBe("abc");
  });
});

it.each([
  ["a Docker configuration", '{"auths":{"r.example":{"password":"registry-pass"}}}', "registry-pass"],
  ["a list of keys", "keys:\n  - digest: 0123456789abcdef\n", "0123456789abcdef"],
  ["a file of variables", "A=1\nDATABASE_PASSWORD='long-password'\n", "long-password"],
  ["a URL", "postgres://tts:p%40ssword@db:5432/tts", "p@ssword"],
  ["a URL in JSON", '{"url":"amqp://tts:rabbit@mq"}', "rabbit"],
])("a value inside of %s in a Secret is redacted on its own", (_what, secret, value) => {
  expect(new Redactor([secret]).text(`the log has ${value} in it`)).toBe("the log has [redacted] in it");
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
])("in the container arguments %j, the value after a flag for a secret is redacted", (args, clean) => {
  expect(redactor.object({ args })).toEqual({ args: clean });
});

describe("a redacted object", () => {
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

  it("keeps only the values of variables that are non-secret settings of svc-tts", () => {
    const template = { spec: { containers: [{ name: "x", env }] } };
    const pool = { spec: { env, podTemplate: JSON.stringify(template) } };
    expect(redactor.object(pool)).toEqual({
      spec: {
        env: cleanEnv,
        podTemplate: JSON.stringify({ spec: { containers: [{ name: "x", env: cleanEnv }] } }),
      },
    });
  });

  it("omits managedFields and the copy by kubectl, and redacts fields with the name of a secret", () => {
    const metadata = {
      name: "demo",
      managedFields: [{}],
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}", note: "yes" },
    };
    expect(redactor.object({ metadata, password: "x", secretName: "keys", replicas: 2 })).toEqual({
      metadata: { name: "demo", annotations: { note: "yes" } },
      password: "[redacted]",
      secretName: "keys",
      replicas: 2,
    });
  });

  it.each<[string, object, object]>([
    [
      "a header of a probe",
      {
        httpHeaders: [
          { name: "X-Api-Key", value: "geheim" },
          { name: "Accept", value: "text/plain" },
        ],
      },
      {
        httpHeaders: [
          { name: "X-Api-Key", value: "[redacted]" },
          { name: "Accept", value: "text/plain" },
        ],
      },
    ],
    [
      "an annotation with the name of a key",
      { annotations: { "example.com/api-key": "geheim", "example.com/note": "yes" } },
      { annotations: { "example.com/api-key": "[redacted]", "example.com/note": "yes" } },
    ],
    [
      "a copy of the object by another tool",
      { annotations: { "objectset.rio.cattle.io/applied": "H4sI", "banzaicloud.com/last-applied": "UEsD" } },
      { annotations: {} },
    ],
    ["a field with a secret key", { secretKey: "geheim" }, { secretKey: "[redacted]" }],
    [
      "the reference to a Secret",
      { secretKeyRef: { name: "s", key: "token" }, secretName: "tts-token" },
      { secretKeyRef: { name: "s", key: "token" }, secretName: "tts-token" },
    ],
    [
      "a command of a podTemplate",
      {
        podTemplate: JSON.stringify({
          spec: { containers: [{ command: ["sh", "-c", "x --token geheim"] }] },
        }),
      },
      {
        podTemplate: JSON.stringify({
          spec: { containers: [{ command: ["sh", "-c", "x --token [redacted]"] }] },
        }),
      },
    ],
    [
      "a variable of an accepted spec",
      {
        status: { class: { spec: JSON.stringify({ models: [{ env: [{ name: "A", value: "geheim" }] }] }) } },
      },
      {
        status: {
          class: { spec: JSON.stringify({ models: [{ env: [{ name: "A", value: "[redacted]" }] }] }) },
        },
      },
    ],
  ])("has no secret in %s", (_what, object, clean) => {
    expect(redactor.object(object)).toEqual(clean);
  });

  it("redacts a pod template that is not valid JSON", () => {
    expect(redactor.object({ podTemplate: "{ geheim" })).toEqual({ podTemplate: "[redacted]" });
  });
});
