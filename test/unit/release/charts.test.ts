/** Tests how a release changes the values and the metadata of the charts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type ChartName, releaseMetadata, releaseValues } from "../../../tools/release/charts.ts";

const root = join(import.meta.dirname, "../../..");
const read = (chart: ChartName, file: string) => readFileSync(join(root, "charts", chart, file), "utf8");
const digestOf = (digit: string) => `sha256:${digit.repeat(64)}`;
const release = {
  version: "1.2.3",
  epochSeconds: 0,
  images: {
    server: { repository: "registry.example/svc-tts/server", digest: digestOf("a") },
    operator: { repository: "registry.example/svc-tts/operator", digest: digestOf("b") },
  },
};

describe("the values of a released chart", () => {
  it("name each image of tts-operator by digest, and keep all other values and comments", () => {
    const original = read("tts-operator", "values.yaml");
    const released = releaseValues("tts-operator", original, release);
    const expected = parse(original);
    Object.assign(expected.images.server, release.images.server);
    Object.assign(expected.images.operator, release.images.operator);
    expect(parse(released)).toEqual(expected);
    const comments = (text: string) => text.match(/^ *#.*$/gm);
    expect(comments(released)).toEqual(comments(original));
  });

  it("name the image of helm test in tts-deployment by digest", () => {
    const released = parse(releaseValues("tts-deployment", read("tts-deployment", "values.yaml"), release));
    expect(released.test.image).toMatchObject(release.images.server);
  });

  it("are refused if the chart has no value for a digest", () => {
    expect(() => releaseValues("tts-deployment", "test: {image: {repository: r}}", release)).toThrow(
      "values.yaml of tts-deployment has no test.image.digest",
    );
  });
});

it("Chart.yaml has the version and the images of the release", () => {
  const released = parse(releaseMetadata(read("tts-operator", "Chart.yaml"), release));
  expect(released).toMatchObject({ version: "1.2.3", appVersion: "1.2.3", name: "tts-operator" });
  const images = parse(released.annotations["artifacthub.io/images"]) as { name: string; image: string }[];
  expect(images).toContainEqual({
    name: "operator",
    image: `registry.example/svc-tts/operator@${digestOf("b")}`,
  });
  expect(images.find(({ name }) => name === "collector")?.image).toContain("opentelemetry");
});
