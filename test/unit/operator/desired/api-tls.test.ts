import { describe, expect, it } from "vitest";
import { networkPolicies } from "../../../../operator/desired/network-policy.ts";
import { apiDeployment } from "../../../../operator/desired/pods/deployment.ts";
import { apiService } from "../../../../operator/desired/service.ts";
import { granted, serverSettings, ttsDeployment } from "../../../support/operator/observed.ts";

const { server } = serverSettings;
const withTls = { tls: { secretName: "tts-tls" } };

function podOf(api: object) {
  const { template } = apiDeployment(ttsDeployment({ api }), undefined, granted, server)?.spec ?? {};
  const [container] = template?.spec?.containers ?? [];
  const env = container?.env?.filter(({ name }) => name.startsWith("SVC_TTS_TLS")) ?? [];
  return {
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
    ports: container?.ports?.map(({ name, containerPort }) => [name, containerPort]),
    probes: [container?.startupProbe, container?.readinessProbe, container?.livenessProbe],
    volumes: template?.spec?.volumes ?? [],
    mounts: container?.volumeMounts ?? [],
  };
}

describe("TLS in the API pods", () => {
  it("changes nothing where it is not requested", () => {
    const { env, ports, volumes } = podOf({});
    expect([env, ports]).toEqual([{}, [["http", 8000]]]);
    expect(volumes.map(({ name }) => name)).not.toContain("tls");
    expect(apiService(ttsDeployment()).spec?.ports?.map(({ name }) => name)).toEqual(["http"]);
  });

  it("mounts the Secret, which the pods wait for, and adds a port", () => {
    const { env, ports, volumes, mounts } = podOf(withTls);
    expect(env).toEqual({
      SVC_TTS_TLS_CERT: "/var/run/svc-tts/tls/tls.crt",
      SVC_TTS_TLS_KEY: "/var/run/svc-tts/tls/tls.key",
      SVC_TTS_TLS_PORT: "8443",
    });
    expect(ports).toEqual([
      ["http", 8000],
      ["https", 8443],
    ]);
    expect(volumes).toContainEqual({
      name: "tls",
      secret: {
        secretName: "tts-tls",
        items: [
          { key: "tls.crt", path: "tls.crt" },
          { key: "tls.key", path: "tls.key" },
        ],
        defaultMode: 0o440,
      },
    });
    expect(mounts).toContainEqual({ name: "tls", mountPath: "/var/run/svc-tts/tls", readOnly: true });
  });

  it("leaves the probes on plain HTTP, because an expired certificate must not restart pods", () => {
    for (const probe of podOf(withTls).probes) {
      expect(probe?.httpGet).toMatchObject({ port: "http", scheme: "HTTP" });
    }
  });

  it("is at port 443 of the Service, and allowed by the network policy", () => {
    expect(apiService(ttsDeployment({ api: withTls })).spec?.ports).toEqual([
      { name: "http", port: 8000, targetPort: "http", protocol: "TCP" },
      { name: "https", port: 443, targetPort: "https", protocol: "TCP" },
    ]);
    const networkPolicy = { enabled: true, apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] } };
    const [policy] = networkPolicies(ttsDeployment({ api: withTls, networkPolicy }));
    expect(policy?.spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([8000, 8443]);
  });

  it.each([{ secretName: "" }, { secretName: "UPPER" }, {}])("is refused with %j", (tls) => {
    expect(() => podOf({ tls })).toThrow("invalid spec");
  });
});
