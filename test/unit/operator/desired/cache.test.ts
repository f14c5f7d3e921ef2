import { describe, expect, it } from "vitest";
import { networkPolicies } from "../../../../operator/desired/network-policy.ts";
import { isAllowed, type Party } from "../../../support/judges/network-policy.ts";
import {
  granted,
  plannedDeployment,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const server = { image: "server:1", pullPolicy: "Always" } as const;

function podOf(spec: object) {
  const pod = plannedDeployment(ttsModelPool({ ...spec }), undefined, granted, server)?.spec.template.spec;
  const container = pod?.containers[0];
  const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath === "/var/lib/svc-tts/models");
  const volume = pod?.volumes?.find(({ name }) => name === mount?.name);
  return { pod, container, mount, volume };
}

describe("the cache of a pool", () => {
  it.each([
    [
      "on an image volume",
      { imageVolume: { reference: "reg/model:1" } },
      { image: { reference: "reg/model:1", pullPolicy: "IfNotPresent" } },
    ],
    [
      "on a claim",
      { persistentVolumeClaim: { claimName: "models" } },
      { persistentVolumeClaim: { claimName: "models" } },
    ],
    [
      "on the disk of the node",
      { emptyDir: { sizeLimit: "20Gi" }, sources: [{ url: "hf://o/r" }] },
      { emptyDir: { sizeLimit: "20Gi" } },
    ],
  ])("%s is mounted read-only, and a variable contains its path", (_what, cache, volume) => {
    const found = podOf({ cache });
    expect(found.volume).toMatchObject(volume);
    expect(found.mount?.readOnly).toBe(true);
    expect(found.container?.env).toContainEqual({
      name: "SVC_TTS_VOICES_DIR",
      value: "/var/lib/svc-tts/models",
    });
  });

  it("is absent by default", () => {
    const { pod, container, mount } = podOf({});
    expect(mount).toBeUndefined();
    expect(pod).not.toHaveProperty("initContainers");
    expect(container?.env?.map(({ name }) => name)).not.toContain("SVC_TTS_VOICES_DIR");
  });

  it("is filled by one init container of the server image for each source", () => {
    const sources = [
      {
        url: "https://host/a.bin",
        sha256: "a".repeat(64),
        path: "b.bin",
        secretRef: { name: "credentials" },
      },
      { url: "s3://bucket/key", endpoint: "http://minio:9000" },
    ];
    const { pod } = podOf({ image: "other:2", cache: { emptyDir: {}, sources } });
    expect(pod?.initContainers).toMatchObject([
      {
        name: "fetch-0",
        image: "server:1",
        imagePullPolicy: "Always",
        args: [
          ...["fetch", "--into", "/var/lib/svc-tts/models", "--source", "https://host/a.bin"],
          ...["--path", "b.bin", "--sha256", "a".repeat(64)],
        ],
        envFrom: [{ secretRef: { name: "credentials" } }],
        terminationMessagePolicy: "FallbackToLogsOnError",
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      },
      { name: "fetch-1", args: expect.arrayContaining(["--endpoint", "http://minio:9000"]) },
    ]);
    for (const { volumeMounts = [] } of pod?.initContainers ?? [])
      expect(volumeMounts).toEqual([{ name: "models", mountPath: "/var/lib/svc-tts/models" }]);
  });
});

describe("the network policies of a pool with a cache", () => {
  const policiesOf = (sources: object[]) =>
    networkPolicies(
      ttsDeployment({ networkPolicy: { enabled: true } }, [
        { name: "mist", kind: "mist", cache: { emptyDir: {}, sources } },
      ]),
    );
  const labels = { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/component": "model" };
  const model: Party = { ip: "10.0.0.2", pod: { namespace: "ns", labels } };
  const world: Party = { ip: "203.0.113.9" };
  const openShiftDns: Party = {
    ip: "10.0.0.7",
    pod: { namespace: "openshift-dns", labels: { "dns.operator.openshift.io/daemonset-dns": "default" } },
  };

  it.each<[string, object, number[]]>([
    ["HTTPS", { url: "https://host/a.bin" }, [443]],
    ["HTTPS with a port", { url: "https://host:8443/a.bin" }, [443, 8443]],
    ["HTTP", { url: "http://host/a.bin", sha256: "a".repeat(64) }, [80, 443]],
    ["Hugging Face", { url: "hf://o/r" }, [443]],
    ["an S3 endpoint", { url: "s3://b/k", endpoint: "http://minio:9000" }, [443, 9000]],
    ["a registry with a port", { url: "oci://reg:5000/a:1" }, [443, 5000]],
  ])("allow model pods to connect only to the ports of the source: %s", (_what, source, ports) => {
    const policies = policiesOf([source]);
    const may = (port: number) => isAllowed(policies, { from: model, to: world, port });
    expect([22, 80, 443, 5000, 8443, 9000].filter(may)).toEqual(ports);
    expect(isAllowed(policies, { from: model, to: world, port: 53, protocol: "UDP" })).toBe(true);
    expect(isAllowed(policies, { from: model, to: openShiftDns, port: 5353, protocol: "UDP" })).toBe(true);
  });
});
