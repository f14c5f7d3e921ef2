import { describe, expect, it } from "vitest";
import { signS3 } from "../../../server/fetch/plan.ts";
import { parseSource } from "../../../server/fetch/source.ts";

const digest = `sha256:${"a".repeat(64)}`;

describe("the source of a model file", () => {
  it.each([
    ["https://host/a/b.bin?x=1", { kind: "http", url: "https://host/a/b.bin?x=1" }],
    ["s3://bucket/a/b c.bin", { kind: "s3", bucket: "bucket", key: "a/b c.bin" }],
    ["hf://o/r", { kind: "hf", repository: "o/r", revision: "main", path: undefined }],
    ["hf://o/r@v1/a/b.bin", { kind: "hf", repository: "o/r", revision: "v1", path: "a/b.bin" }],
    [
      "oci://reg.example:5000/a/b:1.0",
      { kind: "oci", registry: "reg.example:5000", repository: "a/b", reference: "1.0" },
    ],
    ["oci://reg/a", { kind: "oci", registry: "reg", repository: "a", reference: "latest" }],
    [`oci://reg/a@${digest}`, { kind: "oci", registry: "reg", repository: "a", reference: digest }],
  ])("%s is parsed", (text, source) => {
    expect(parseSource(text)).toEqual(source);
  });

  it.each([
    "ftp://host/a",
    "https://host/",
    "s3://bucket",
    "s3://b/dir/",
    "hf://only",
    "oci://reg",
    "model.bin",
    "",
  ])("%s is refused with a list of the accepted forms", (text) => {
    expect(() => parseSource(text)).toThrow(/must be https:\/\/HOST\/PATH, s3:.*hf:.*oci:/);
  });

  it("is refused with a message that contains no password and no query", () => {
    expect(() => parseSource("ftp://me:secret@host/a?token=secret")).not.toThrow(/secret/);
    expect(() => parseSource("https://me:secret@host/a")).toThrow(
      /not contain a user name or a password.*secretRef/,
    );
  });
});

it("signS3 signs a request as in Amazon's example of GET Object", async () => {
  const headers = await signS3(
    {
      url: "https://examplebucket.s3.amazonaws.com/test.txt",
      headers: { range: "bytes=0-9" },
      region: "us-east-1",
      accessKeyId: "AKIAIOSFODNN7EXAMPLE",
      secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    },
    Date.parse("2013-05-24T00:00:00Z"),
  );
  expect(headers.authorization).toBe(
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, " +
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, " +
      "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  );
});
