import { describe, expect, it } from "vitest";
import { telemetryFinding } from "../../../../operator/status/optional-conditions.ts";
import { observed, ttsDeployment } from "../../../support/operator/observed.ts";

const collector = { enabled: true, exporter: { endpoint: "https://backend:4317" } };

function found(missing: object, telemetry: object | undefined = { collector }) {
  const nothing = { missingSecrets: [], monitorsMissing: false };
  const deployment = ttsDeployment(telemetry && { telemetry });
  const [finding] = telemetryFinding(observed(deployment, { telemetry: { ...nothing, ...missing } }));
  return finding && `${finding.status} ${finding.reason}: ${finding.message}`;
}

describe("TelemetryReady", () => {
  it("is not told where nothing is asked for", () => {
    expect(telemetryFinding(observed(ttsDeployment()))).toEqual([]);
  });

  it("is true where nothing is missing", () => {
    expect(found({})).toMatch(/^True Configured/);
  });

  it("names the Secret that is missing, and what to do", () => {
    expect(found({ missingSecrets: ["creds"], monitorsMissing: true })).toMatch(
      /^False SecretMissing: .*ns\/creds.*Create them/,
    );
  });

  it("says that the Prometheus operator is not there", () => {
    expect(found({ monitorsMissing: true })).toMatch(
      /^False MonitorsNotInstalled: .*install the Prometheus operator/,
    );
  });
});
