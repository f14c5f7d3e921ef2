import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import { resourceOf } from "../../../operator/cluster/resources.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { type Certificate, selfSigned } from "../../support/certificate.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

/**
 * Tests what the operator reports if the API server rejects its writes: because of quotas, admission webhooks
 * and policies of other products, or because objects of other owners exist.
 */

/** A control plane for this file only: webhooks and policies affect every request to the API server. */
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ prepare: installCrds });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, plane.address);
});

afterEach(() => house[Symbol.asyncDispose]());

async function apply(...items: object[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items };
  await kubectlOrThrow(plane.address, ["apply", "-f", "-"], JSON.stringify(list));
}

const namespaceSelector = () => ({ matchLabels: { "kubernetes.io/metadata.name": house.namespace } });

/**
 * Waits until the API server enforces a new webhook or policy, by creating objects.
 * @param rejection the expected message of the API server
 * @throws ApiError if the API server rejects the object with another message
 */
async function untilRejected(
  rejection: string,
  probe: { readonly apiVersion: string; readonly kind: string; readonly spec: object },
  name = "probe",
): Promise<void> {
  const metadata = { name, namespace: house.namespace };
  await house.until(async () => {
    try {
      await house.admin.create({ ...probe, metadata });
    } catch (error) {
      if (error instanceof ApiError && error.message.includes(rejection)) return true;
      throw error;
    }
    await house.remove(probe.kind, name);
    return false;
  }, `the rejection of ${probe.kind} ${name}`);
}

describe("a ResourceQuota", () => {
  it("that blocks a child is reported with its counts, and the child is created when the quota is raised", async () => {
    const spec = { hard: { "count/deployments.apps": "1" } };
    const metadata = { name: "small", namespace: house.namespace };
    await apply({ apiVersion: "v1", kind: "ResourceQuota", metadata, spec });
    // No quota controller runs in this control plane, so the test writes the status.
    const status = JSON.stringify({ status: { hard: spec.hard, used: { "count/deployments.apps": "0" } } });
    await house.kubectl("patch", "resourcequota/small", "--subresource=status", "--type=merge", "-p", status);
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    const named =
      /^False QuotaExceeded: .*exceeded quota: small.*count\/deployments.apps=1.*Raise the namespace's ResourceQuota/;
    await house.untilCondition("Ready", named);
    await house.kubectl("delete", "resourcequota/small");
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
  });
});

describe("an admission webhook of another product", () => {
  let certificate: Certificate;
  let server: Server;
  let review: (kind: string) => { readonly allowed: boolean; readonly message?: string };

  beforeAll(async () => {
    certificate = await selfSigned();
  });

  beforeEach(async () => {
    server = createServer(certificate, async (request, response) => {
      const { apiVersion, kind, request: admission } = (await json(request)) as AdmissionReview;
      const { allowed, message } = review(admission.kind.kind);
      const verdict = { uid: admission.uid, allowed, ...(message && { status: { message, code: 403 } }) };
      response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ apiVersion, kind, response: verdict }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    await install();
  });

  /** Installs the webhook for the namespace of `house`. */
  async function install(): Promise<void> {
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const resources = ["deployments", "services"];
    await apply({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: house.namespace },
      webhooks: [
        {
          name: "guard.example.com",
          clientConfig: { url, caBundle: certificate.cert.toString("base64") },
          namespaceSelector: namespaceSelector(),
          rules: [{ apiGroups: ["apps", ""], apiVersions: ["v1"], operations: ["*"], resources }],
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
        },
      ],
    });
    review = () => ({ allowed: false });
    await untilRejected('admission webhook "guard.example.com" denied the request', {
      apiVersion: "v1",
      kind: "Service",
      spec: { ports: [{ port: 1 }] },
    });
  }

  async function uninstall(): Promise<void> {
    await kubectlOrThrow(plane.address, ["delete", "validatingwebhookconfiguration", house.namespace]);
  }

  afterEach(async () => {
    await uninstall();
    server.closeAllConnections();
    server.close();
  });

  it("that rejects Deployments is reported with its message, and all other children are created", async () => {
    review = (kind) =>
      kind === "Deployment" ? { allowed: false, message: "images must be signed" } : { allowed: true };
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilCondition(
      "Stalled",
      /^True AdmissionDenied: .*guard\.example\.com, which is not part of svc-tts: .*images must be signed/,
    );
    await house.mustGet("Service", "demo-api");
    await house.until(async () => {
      const { status } = await house.pool("demo-mist");
      return status?.conditions.find(({ type }) => type === "Stalled")?.reason === "AdmissionDenied";
    }, "the condition of the pool");
    review = () => ({ allowed: true });
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
  });

  it("whose message changes with each attempt causes attempts only after the backoff", async () => {
    await uninstall();
    await house[Symbol.asyncDispose]();
    house = await OperatorHouse.open({ clock: new FakeClock(Date.now()) }, plane.address);
    await install();
    let attempts = 0;
    review = (kind) =>
      kind === "Service"
        ? { allowed: false, message: `read tcp 10.0.0.5:${40_000 + ++attempts}: connection reset` }
        : { allowed: true };
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilCondition("Stalled", /^True AdmissionDenied: .*connection reset/);
    // The clock stands still, so that no backoff ends. The operator has written the message of each attempt into
    // the status, and must not make another attempt because of this change.
    await house.idle();
    const first = attempts;
    for (let reads = 0; reads < 20; reads++) {
      await house.deployment();
      await house.idle();
    }
    expect(attempts).toBe(first);
    const passes = house.activities.map(({ queue }) => queue.begun);
    await house.advance(400);
    expect(attempts).toBeGreaterThan(first);
    // The waits of a key double from 5 ms on: at most seven fit into 400 ms, for the TtsDeployment and its pool.
    const more = house.activities.map(({ queue }, i) => queue.begun - (passes[i] ?? 0));
    expect(Math.max(...more)).toBeLessThanOrEqual(2 * 8);
  });

  it("that does not respond is reported, and the request is retried", async () => {
    server.closeAllConnections();
    server.close();
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilCondition(
      "Ready",
      /^False WebhookUnreachable: .*guard\.example\.com, which is not part of svc-tts and does not respond/,
    );
    expect(await house.condition("Stalled")).toMatch(/^False/);
  });
});

interface AdmissionReview {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: { readonly uid: string; readonly kind: { readonly kind: string } };
}

describe("a ValidatingAdmissionPolicy", () => {
  const policyName = () => `no-${house.namespace}`;

  /**
   * Installs a policy that rejects new objects of a resource such as `apps/deployments` if the expression is
   * false.
   */
  async function rejectIfFalse(groupAndResource: string, expression: string, message: string): Promise<void> {
    const apiVersion = "admissionregistration.k8s.io/v1";
    const metadata = { name: policyName() };
    const [group, resource] = groupAndResource.split("/");
    const resourceRules = [
      { apiGroups: [group], apiVersions: ["v1"], operations: ["CREATE"], resources: [resource] },
    ];
    const validations = [{ expression, message }];
    const matchResources = { namespaceSelector: namespaceSelector() };
    await apply(
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicy",
        metadata,
        spec: { matchConstraints: { resourceRules }, validations },
      },
      {
        apiVersion,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata,
        spec: { policyName: metadata.name, validationActions: ["Deny"], matchResources },
      },
    );
  }

  async function allow(): Promise<void> {
    const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
    await kubectlOrThrow(plane.address, ["delete", "--ignore-not-found", kinds, policyName()]);
  }

  afterEach(allow);

  it("that rejects a Deployment is reported with its message", async () => {
    await rejectIfFalse("apps/deployments", "object.metadata.name != 'demo-api'", "no API today");
    await untilRejected(
      "denied request: no API today",
      { apiVersion: "apps/v1", kind: "Deployment", spec: { selector, template } },
      "demo-api",
    );
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilCondition(
      "Stalled",
      /^True AdmissionDenied: .*ValidatingAdmissionPolicy 'no-.*no API today/,
    );
  });

  it("that rejects an Ingress blocks no other child, and the Ingress is created when it is allowed", async () => {
    const route = { api: { route: { hostnames: ["speech.example.com"], ingress: {} } } };
    const defaultBackend = { service: { name: "s", port: { number: 1 } } };
    await rejectIfFalse("networking.k8s.io/ingresses", "false", "no host today");
    await untilRejected("denied request: no host today", {
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      spec: { defaultBackend },
    });
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({ ...route, networkPolicy: { enabled: true } });
    await house.serve("demo-api", "demo-mist");
    await house.untilCondition("Ready", /^False AdmissionDenied: Ingress demo-api .*no host today/);
    for (const [kind, name] of [
      ["NetworkPolicy", "demo-model"],
      ["TtsModelPool", "demo-mist"],
      ["Deployment", "demo-mist"],
      ["Deployment", "demo-api"],
    ] as const)
      await house.mustGet(kind, name);
    // Children that the spec no longer contains are deleted although the Ingress is rejected.
    await house.putDeployment(route);
    await house.untilGone("NetworkPolicy", "demo-model");
    await allow();
    await house.untilThere("Ingress", "demo-api");
    await house.untilReady();
  });
});

const selector = { matchLabels: { a: "b" } };
const containers = [{ name: "c", image: "i" }];
const template = { metadata: { labels: { a: "b" } }, spec: { containers } };

/** Objects of another owner: kind, suffix of the name, and content. */
const foreign: [string, string, object][] = [
  ["ServiceAccount", "model", {}],
  ["Role", "api", { rules: [] }],
  ["RoleBinding", "api", { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "x" } }],
  ["ConfigMap", "routing", { data: { a: "b" } }],
  ["Secret", "token", { stringData: { token: "theirs", accepted: "theirs" } }],
  ["Service", "api", { spec: { ports: [{ port: 1 }] } }],
  ["Deployment", "api", { spec: { selector, template } }],
  ["Deployment", "mist", { spec: { selector, template } }],
  ["TtsModelPool", "mist", { spec: { deployment: "other", pool: "mist", kind: "mist" } }],
  ["PodDisruptionBudget", "mist", { spec: { selector, maxUnavailable: 1 } }],
  ["Ingress", "api", { spec: { defaultBackend: { service: { name: "s", port: { number: 1 } } } } }],
  ["NetworkPolicy", "model", { spec: { podSelector: {} } }],
];

it("the operator reports an existing object of another owner of each kind, and does not change it", async () => {
  await house.putLicense(await house.issuer.issue({ maxStreams: 1000 }));
  const before = new Map<string, KubernetesObject>();
  for (const [index, [kind, end, content]] of foreign.entries()) {
    const name = `d${index}`;
    const { apiVersion } = resourceOf(kind);
    const metadata = {
      name: `${name}-${end}`,
      namespace: house.namespace,
      labels: { "tts.svc.dev/deployment": name },
    };
    before.set(name, await house.admin.create({ apiVersion, kind, metadata, ...content }));
    const api = { route: { hostnames: [`${name}.example.com`], ingress: {} } };
    await house.putDeployment({ api, networkPolicy: { enabled: true } }, undefined, name);
  }
  for (const [index, [kind, end]] of foreign.entries()) {
    const what = new RegExp(
      `^True NameTaken: .*${kind} ${house.namespace}/d${index}-${end} was not created by this operator`,
    );
    await house.untilCondition("Stalled", what, `d${index}`);
  }
  await house.idle();
  for (const [index, [kind, end]] of foreign.entries()) {
    const now = await house.mustGet(kind, `d${index}-${end}`);
    const original = before.get(`d${index}`);
    // The operator writes the status of a pool without an owner, which changes these fields of the metadata.
    const changedByStatus = ["resourceVersion", "managedFields"];
    const comparable = (object: typeof original) =>
      Object.entries(object?.metadata ?? {}).filter(
        ([field]) => kind !== "TtsModelPool" || !changedByStatus.includes(field),
      );
    expect({ kind, metadata: comparable(now), spec: now.spec }).toEqual({
      kind,
      metadata: comparable(original),
      spec: original?.spec,
    });
  }
});

it("a TtsModelPool that a user created reports that no pods run for it", async () => {
  const metadata = { name: "mine", namespace: house.namespace };
  const pool = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", metadata };
  await house.admin.create({ ...pool, spec: { deployment: "demo", pool: "mine", kind: "mist" } });
  await house.until(async () => {
    const { conditions = [] } = (await house.pool("mine")).status ?? {};
    const stalled = conditions.find(({ type }) => type === "Stalled");
    return stalled?.reason === "NotManaged" && /spec\.models of a TtsDeployment/.test(stalled.message);
  }, "NotManaged");
  expect(await house.get("Deployment", "mine")).toBeUndefined();
});

it("the operator reports a difference between its clock and the clock of the API server", async () => {
  await house.ready();
  expect(await house.condition("ClockInStep")).toBe("absent");
  await house.restart({ clockAheadMs: -3 * 3_600_000 });
  await house.untilCondition(
    "ClockInStep",
    /^False ClockSkew: The operator's clock is 3 hours behind the API server's/,
  );
  expect(await house.condition("LicenseValid")).toMatch(/^False Invalid: .*valid from .*clock/);
  await house.restart();
  await house.untilCondition("ClockInStep", /^absent/);
  await house.untilReady();
});
