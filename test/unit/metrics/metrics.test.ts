import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metric } from "prom-client";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../../server/contract/errors.ts";
import { BoundedLabel } from "../../../server/metrics/bounded-label.ts";
import { toPrometheusText } from "../../../server/metrics/registry.ts";
import { apiMetrics, modelMetrics, operatorMetrics, seriesOf } from "../../support/server/metrics.ts";

/** The fields of a metric of prom-client that its types do not declare. */
type DescribedMetric = Metric & {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
};

const tiers = { API: apiMetrics(), model: modelMetrics() };

function metricsOf(tier: keyof typeof tiers): readonly DescribedMetric[] {
  return tiers[tier].registry.getMetricsAsArray() as unknown as DescribedMetric[];
}

/** Returns the row of each metric as the page must show it. */
function rows(): Map<string, string> {
  const found = new Map<string, string>();
  const names = (tier: keyof typeof tiers) => new Set(metricsOf(tier).map(({ name }) => name));
  const [api, model] = [names("API"), names("model")];
  for (const { name, help, type, labelNames } of [...metricsOf("API"), ...metricsOf("model")]) {
    const tier = api.has(name) && model.has(name) ? "both" : api.has(name) ? "API" : "model";
    const labels = labelNames.map((label) => `\`${label}\``).join(", ");
    found.set(name, `| \`${name}\` | ${type} | ${labels} | ${tier} | ${help} |`);
  }
  return found;
}

async function read(...pages: readonly string[]): Promise<string> {
  const folder = join(import.meta.dirname, "../../../docs/reference");
  return (await Promise.all(pages.map((page) => readFile(join(folder, page), "utf8")))).join("\n");
}

function documentedIn(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => /^\| `[a-z0-9_]+` \|/.test(line))
    .sort();
}

describe("the reference pages of metrics", () => {
  it("have exactly one row for each metric of the server", async () => {
    expect(documentedIn(await read("metrics.md", "metrics-process.md"))).toEqual([...rows().values()].sort());
  });

  it("have exactly one row for each metric of the operator", async () => {
    const row = ({ name, help, type, labelNames }: DescribedMetric) =>
      `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
    const metrics = operatorMetrics().getMetricsAsArray() as unknown as DescribedMetric[];
    expect(documentedIn(await read("metrics-operator.md"))).toEqual(metrics.map(row).sort());
  });
});

describe("the metrics of both tiers", () => {
  const ours = [...metricsOf("API"), ...metricsOf("model")].filter(({ name }) => /^(svc|http)_/.test(name));

  it.each(ours.map((metric) => [metric.name, metric] as const))(
    "%s follows the naming conventions of Prometheus",
    (name, { type, help, labelNames }) => {
      expect(name).toMatch(/^(svc_tts|http)(_[a-z]+)+$/);
      expect(name.endsWith("_total"), "counters, and only counters, end in _total").toBe(type === "counter");
      expect(name).not.toMatch(/_(ms|milliseconds|minutes|hours|kb|mb|percent|counter|gauge|histogram)(_|$)/);
      expect(name).not.toMatch(/_(count|sum|bucket)$/);
      expect(help.length).toBeGreaterThan(10);
      for (const label of labelNames) expect(label).toMatch(/^[a-z_]+$/);
      expect(labelNames).not.toContain("le");
    },
  );

  it("measure time in seconds, except for real-time factors", () => {
    const histograms = ours.filter(({ type }) => type === "histogram").map(({ name }) => name);
    const factors = ["svc_tts_model_real_time_factor", "svc_tts_pool_real_time_factor"];
    expect(histograms.filter((name) => !name.endsWith("_seconds")).sort()).toEqual(factors);
  });
});

describe("the labels of metrics", () => {
  it("of pools and revisions are limited to the 32 most recently used pairs", async () => {
    const api = apiMetrics();
    const record = (revision: string) =>
      api.poolStream({ pool: "p", revision, outcome: "ok", firstAudioSeconds: 1, realTimeFactor: 1 });
    for (let i = 0; i < 100; i += 1) record(`r${i}`);
    const { text } = await api.exposition(undefined);
    const shown = new Set([...text.matchAll(/revision="(\w+)"/g)].map(([, revision]) => revision));
    expect([...shown]).toEqual(Array.from({ length: 32 }, (_, i) => `r${i + 68}`));
  });

  it("get no new values from the content of requests", async () => {
    const api = apiMetrics();
    const model = modelMetrics();
    const recordRequest = (word: string) => {
      for (const { answered } of [
        { answered: api.answered.bind(api) },
        { answered: model.answered.bind(model) },
      ]) {
        answered({ endpoint: undefined, method: word, status: 404, code: "not_found", seconds: 0.1 });
      }
      api.spoken({ model: "mist", voice: word, outcome: "ok", ranDry: false });
    };
    for (let i = 0; i < 600; i++) recordRequest(`first ${i}`);
    const before = seriesOf((await api.exposition(undefined)).text);
    for (let i = 0; i < 10_000; i++) recordRequest(`"}\n${i}\\ é`);
    const after = seriesOf((await api.exposition(undefined)).text);
    expect(after).toEqual(before);
    const modelSeries = seriesOf((await model.exposition(undefined)).text);
    expect([...modelSeries].filter((line) => line.startsWith("http_requests_total"))).toHaveLength(1);
  });

  it("of errors have only lowercase letters and underscores", () => {
    for (const code of errorCodes) expect(code).toMatch(/^[a-z_]+$/);
  });

  it("keep a limited number of values, and combine the other values", () => {
    const label = new BoundedLabel(2);
    expect(["a", "b", "c", "a", "d"].map((value) => label.of(value))).toEqual([
      "a",
      "b",
      "other",
      "a",
      "other",
    ]);
  });
});

describe("the exposition of metrics", () => {
  it("is Prometheus text by default, and OpenMetrics if Accept names it", async () => {
    const api = apiMetrics();
    for (const accept of [undefined, "*/*", "text/plain;version=0.0.4", "text/html"]) {
      const { contentType, text } = await api.exposition(accept);
      expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
      expect(text).not.toContain("# EOF");
    }
    const { contentType, text } = await api.exposition(
      "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3",
    );
    expect(contentType).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
    expect(text.endsWith("# EOF\n")).toBe(true);
  });

  it("has exemplars with a trace only in OpenMetrics", async () => {
    const api = apiMetrics();
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    api.firstAudio({ model: "mist", variant: "stream-wav", seconds: 0.012, traceId });
    const { text } = await api.exposition("application/openmetrics-text");
    expect(text).toMatch(
      /_bucket\{le="0.015",model="mist",variant="stream-wav"\} 1 # \{trace_id="0af7651916cd43dd8448eb211c80319c"\} 0\.012 \d/,
    );
    const older = (await api.exposition(undefined)).text;
    expect(older).toContain('_bucket{le="0.015",model="mist",variant="stream-wav"} 1\n');
    expect(older).not.toContain(traceId);
  });

  it("adds _total to the names of counters in the comments of Prometheus text", () => {
    const text =
      '# HELP http_requests x # {y\n# TYPE http_requests counter\nhttp_requests_total{a="b # {c} d"} 1\n# EOF\n';
    expect(toPrometheusText(text)).toBe(
      '# HELP http_requests_total x # {y\n# TYPE http_requests_total counter\nhttp_requests_total{a="b # {c} d"} 1\n',
    );
  });
});
