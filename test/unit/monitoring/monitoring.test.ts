import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { revisionOutdated } from "../../../operator/status/conditions.ts";
import { engineInstruments } from "../../../server/telemetry/open-telemetry.ts";
import { apiMetrics, modelMetrics, operatorMetrics, sentSeries } from "../../support/server/metrics.ts";

const root = join(import.meta.dirname, "../../..");
const runbooks = await readdir(join(root, "docs/runbooks"));
const dashboards = (await readdir(join(root, "config/grafana"))).filter((name) => name.endsWith(".json"));

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: { readonly runbook_url: string; readonly summary: string };
  readonly labels?: { readonly severity: string };
}

const rules: Rule[] = parse(
  await readFile(join(root, "config/prometheus/rules.yaml"), "utf8"),
).groups.flatMap((group: { rules: Rule[] }) => group.rules);
const alerts = rules.filter(({ alert }) => alert !== undefined);

/** The names of all series, with the labels of each. */
const series = new Map<string, Set<string>>();
for (const registry of [apiMetrics().registry, modelMetrics().registry, operatorMetrics()]) {
  const metrics = registry.getMetricsAsArray() as unknown as {
    name: string;
    type: string;
    labelNames: string[];
  }[];
  for (const { name, type, labelNames } of metrics) {
    const names = type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
    for (const one of names)
      series.set(one, new Set([...labelNames, ...(one.endsWith("_bucket") ? ["le"] : [])]));
  }
}
for (const [name, labels] of sentSeries()) series.set(name, new Set(labels));
for (const { record } of rules) if (record) series.set(record, new Set());

/** The labels that the service discovery of Prometheus adds. */
const discoveryLabels = new Set(["namespace", "pod", "job", "name"]);
const words = new Set(
  "sum min max rate increase avg_over_time histogram_quantile time by on or and unless without group_left vector topk".split(
    " ",
  ),
);

/** Returns the selectors of a query: the metric and the labels that each selector matches. */
function selectors(query: string): { metric: string; labels: string[] }[] {
  const grouped = query.replaceAll(/\b(by|on|group_left|without)\s*\([^)]*\)/g, "");
  return [...grouped.matchAll(/([a-z_][a-z0-9_:]*)\s*(\{[^}]*\})?/g)].flatMap(
    ([, metric = "", matchers = ""]) =>
      words.has(metric) || /^[smhd]$/.test(metric)
        ? []
        : [
            {
              metric,
              labels: [...matchers.matchAll(/([a-z_][a-z0-9_]*)\s*[=!]/g)].map(([, label = ""]) => label),
            },
          ],
  );
}

function expectToExist(query: string): void {
  const found = selectors(query.replaceAll(/\[[0-9a-z]+\]/g, ""));
  expect(found.length, query).toBeGreaterThan(0);
  for (const { metric, labels } of found) {
    expect([...series.keys()], query).toContain(metric);
    for (const label of labels) {
      if (!discoveryLabels.has(label))
        expect([...(series.get(metric) ?? [])], `${metric} in ${query}`).toContain(label);
    }
  }
}

/** Checks that a metric of the query has each label by which the query groups its result. */
function expectGroupsToExist(query: string): void {
  const known = new Set(discoveryLabels);
  for (const { metric } of selectors(query)) for (const label of series.get(metric) ?? []) known.add(label);
  for (const [, labels = ""] of query.matchAll(/\bby\s*\(([^)]*)\)/g)) {
    for (const label of labels.split(",")) expect([...known], query).toContain(label.trim());
  }
}

describe("the Grafana dashboards", () => {
  it.each(dashboards)("%s queries only existing metrics and labels", async (file) => {
    const { panels } = JSON.parse(await readFile(join(root, "config/grafana", file), "utf8"));
    const queries = panels.flatMap((panel: { targets: { expr: string }[] }) =>
      panel.targets.map(({ expr }) => expr),
    );
    expect(queries.length).toBeGreaterThan(5);
    for (const query of queries) {
      expectToExist(query);
      expectGroupsToExist(query);
    }
  });

  it("show every metric that arcana sends, and docs/reference/metrics-otlp.md documents it", async () => {
    const { panels } = JSON.parse(await readFile(join(root, "config/grafana/models.json"), "utf8"));
    const shown = JSON.stringify(panels);
    const guide = await readFile(join(root, "docs/reference/metrics-otlp.md"), "utf8");
    for (const { name } of Object.values(engineInstruments)) {
      const sent = [...sentSeries().keys()].filter((one) => one.startsWith(name.replaceAll(".", "_")));
      expect(sent.filter((one) => shown.includes(one)).length, name).toBeGreaterThan(0);
      expect(guide).toContain(sent[0]?.replace(/_(bucket|sum|count)$/, ""));
    }
  });

  it("list no condition that is False while nothing is wrong", async () => {
    const { panels } = JSON.parse(await readFile(join(root, "config/grafana/operator.json"), "utf8"));
    const panel = panels.find(({ title }: { title: string }) => title === "Conditions that are False");
    for (const condition of ["Stalled", "Reconciling", revisionOutdated])
      expect(panel.targets[0].expr).toMatch(new RegExp(`condition!~"[^"]*\\b${condition}\\b`));
  });

  it("show the error rate of which the alerts warn", async () => {
    const { panels } = JSON.parse(await readFile(join(root, "config/grafana/api.json"), "utf8"));
    const panel = panels.find(({ title }: { title: string }) => title === "Error rate");
    const requests = (expr: string) => [...expr.matchAll(/outcome!?="[a-z]+"/gu)].map(String);
    const rule = rules.find(({ expr }) => expr.includes("[5m]") && expr.includes('outcome="error"'));
    expect(requests(panel.targets[0].expr)).toEqual(requests(rule?.expr ?? ""));
  });

  it("would fail these tests with an unknown metric or label", () => {
    expect(() => expectToExist('rate(svc_tts_request_total{model="x"}[5m])')).toThrow();
    expect(() => expectToExist('rate(svc_tts_requests_total{voices="x"}[5m])')).toThrow();
  });
});

describe("the Prometheus rules", () => {
  it.each(rules.map((rule) => [rule.alert ?? rule.record ?? "", rule.expr]))(
    "%s queries only existing metrics and labels",
    (_name, expr) => {
      expectToExist(expr);
    },
  );

  it("have a severity and a runbook for each alert, and every runbook has an alert", async () => {
    for (const { alert, annotations, labels } of alerts) {
      expect(annotations?.runbook_url).toMatch(new RegExp(`/docs/runbooks/${alert}\\.md$`));
      expect(["warning", "critical"]).toContain(labels?.severity);
    }
    expect(runbooks.map((file) => file.replace(/\.md$/, "")).toSorted()).toEqual(
      alerts.map(({ alert }) => alert).toSorted(),
    );
  });
});

describe("the runbooks", () => {
  const query = /```promql\n([^`]+)```\n\n(.*)/;

  it.each(runbooks)("%s queries only existing metrics and labels, and explains the result", async (file) => {
    const [, queries = "", explanation] =
      query.exec(await readFile(join(root, "docs/runbooks", file), "utf8")) ?? [];
    for (const line of queries.trim().split("\n")) {
      expectToExist(line);
      expectGroupsToExist(line);
    }
    expect(explanation).toMatch(/^The (result|first query) /);
  });

  it("would fail this test with a label that no metric of the query has", () => {
    expect(() => expectGroupsToExist("sum by (model) (rate(http_errors_total[5m]))")).toThrow();
  });
});
