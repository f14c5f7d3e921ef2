import { describe, expect, it } from "vitest";
import { telemetryFinding } from "../../../../operator/status/optional-conditions.ts";
import { observed, ttsDeployment } from "../../../support/operator/observed.ts";

const collector = { enabled: true, exporter: { endpoint: "https://backend:4317" } };

function conditionWith(missing: object, telemetry: object | undefined = { collector }) {
  const nothing = { missingSecrets: [], monitorsMissing: false };
  const deployment = ttsDeployment(telemetry && { telemetry });
  const [finding] = telemetryFinding(observed(deployment, { telemetry: { ...nothing, ...missing } }));
  return finding && `${finding.status} ${finding.reason}: ${finding.message}`;
}

describe("the condition TelemetryReady", () => {
  it("is absent without telemetry", () => {
    expect(telemetryFinding(observed(ttsDeployment()))).toEqual([]);
  });

  it("is True if nothing is missing", () => {
    expect(conditionWith({})).toMatch(/^True Configured/);
  });

  it("names the missing Secret and the remedy", () => {
    expect(conditionWith({ missingSecrets: ["creds"], monitorsMissing: true })).toMatch(
      /^False SecretMissing: .*ns\/creds.*Create the Secrets/,
    );
  });

  it("reports that the Prometheus operator is missing", () => {
    expect(conditionWith({ monitorsMissing: true })).toMatch(
      /^False MonitorsNotInstalled: .*Install the Prometheus operator/,
    );
  });
});
