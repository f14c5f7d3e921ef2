import { describe, expect, it } from "vitest";
import { apiDeployment } from "../../../../operator/desired/pods/deployment.ts";
import { granted, serverSettings, ttsDeployment } from "../../../support/operator/observed.ts";

const { server } = serverSettings;
const sqlite = { persistentVolumeClaim: { claimName: "claim" } };

function deploymentOf(api: object) {
  const { strategy, template } =
    apiDeployment(ttsDeployment({ api }), undefined, granted, server)?.spec ?? {};
  const [container] = template?.spec?.containers ?? [];
  const own =
    container?.env?.filter(({ name }) =>
      /_TTS_(KEYS_FILE|TRUSTED|DATABASE|DASHBOARD|OIDC|SPOOL)/.test(name),
    ) ?? [];
  const mounts = container?.volumeMounts ?? [];
  const volumes = template?.spec?.volumes ?? [];
  return {
    strategy,
    env: Object.fromEntries(own.map(({ name, value }) => [name, value])),
    volumeAt: (path: string) => volumes.find(({ name }) => name === mountAt(path)?.name),
    mountAt,
  };
  function mountAt(path: string) {
    return mounts.find(({ mountPath }) => mountPath === path);
  }
}

describe("the API keys of API pods", () => {
  it("come from a Secret without a database", () => {
    expect(deploymentOf({ keys: { secretRef: { name: "keys" } } }).env).toEqual({
      SVC_TTS_KEYS_FILE: "/var/run/svc-tts/keys/keys.yaml",
    });
    expect(deploymentOf({}).env).toEqual({});
  });

  it("come from an SQLite file on a claim, which one pod at a time uses, in addition to a Secret", () => {
    const { strategy, env, volumeAt, mountAt } = deploymentOf({
      keys: { sqlite, secretRef: { name: "keys" } },
    });
    expect(strategy).toEqual({ type: "Recreate" });
    expect(env).toEqual({
      SVC_TTS_KEYS_FILE: "/var/run/svc-tts/keys/keys.yaml",
      SVC_TTS_DATABASE: "/var/lib/svc-tts/database/svc-tts.db",
    });
    const folder = "/var/lib/svc-tts/database";
    expect(volumeAt(folder)?.persistentVolumeClaim).toEqual({ claimName: "claim" });
    expect(mountAt(folder)?.readOnly).toBeUndefined();
  });

  it("come from PostgreSQL with a password file, whose Secret may be created after the pod", () => {
    const { strategy, env, volumeAt } = deploymentOf({
      keys: {
        postgres: {
          url: "postgres://svc-tts@db:6432/tts?sslmode=verify-full",
          secretRef: { name: "db", key: "pw" },
          caSecretRef: { name: "authority" },
        },
      },
    });
    expect(strategy?.type).toBe("RollingUpdate");
    expect(env).toEqual({
      SVC_TTS_DATABASE:
        "postgres://svc-tts@db:6432/tts?sslmode=verify-full&sslrootcert=/var/run/svc-tts/database-ca/ca.crt",
      SVC_TTS_DATABASE_PASSWORD_FILE: "/var/run/svc-tts/database/password",
      SVC_TTS_SPOOL_DIR: "/var/lib/svc-tts/spool",
    });
    expect(volumeAt("/var/lib/svc-tts/spool")?.emptyDir).toEqual({ sizeLimit: "144Mi" });
    expect(volumeAt("/var/run/svc-tts/database")?.secret).toMatchObject({
      secretName: "db",
      optional: true,
      items: [{ key: "pw", path: "password" }],
    });
    const authority = volumeAt("/var/run/svc-tts/database-ca")?.secret;
    expect(authority).toMatchObject({
      secretName: "authority",
      items: [{ key: "ca.crt", path: "ca.crt" }],
    });
    expect(authority?.optional).toBeUndefined(); // The server reads this file when it starts.
  });

  it("come from PostgreSQL with sslmode=disable if the URL sets no sslmode", () => {
    const postgres = { url: "postgres://db/tts" };
    expect(deploymentOf({ keys: { postgres } }).env.SVC_TTS_DATABASE).toBe(
      "postgres://db/tts?sslmode=disable",
    );
  });

  it.each([
    "postgres://user:password@db/tts",
    "postgres://db/tts?password=x",
    "postgres://db/tts?sslmode=verify-full&sslkey=/etc/x",
    "mysql://db/tts",
    "postgres://db",
  ])("cannot come from a database at %s", (url) => {
    expect(() => deploymentOf({ keys: { postgres: { url } } })).toThrow("invalid spec");
  });
});

describe("the dashboard of API pods", () => {
  it("trusts the given proxies, and gets no variable if none is set", () => {
    const trustedProxies = ["10.0.0.0/8", "2001:db8::/32"];
    expect(deploymentOf({ trustedProxies }).env).toEqual({
      SVC_TTS_TRUSTED_PROXIES: "10.0.0.0/8,2001:db8::/32",
    });
    expect(deploymentOf({}).env).toEqual({});
  });

  it("gets its URL, and the setup token for its first owner from a Secret", () => {
    const dashboard = { url: "https://tts.example.com", setupSecretRef: { name: "setup" } };
    const { env, volumeAt } = deploymentOf({ keys: { sqlite }, dashboard });
    expect(env).toMatchObject({
      SVC_TTS_DASHBOARD_URL: "https://tts.example.com",
      SVC_TTS_DASHBOARD_SETUP_FILE: "/var/run/svc-tts/dashboard-setup/token",
    });
    expect(volumeAt("/var/run/svc-tts/dashboard-setup")?.secret).toMatchObject({
      secretName: "setup",
      optional: true,
      items: [{ key: "token", path: "token" }],
    });
  });

  it.each(["https://tts.example.com/speech", "tts.example.com", "https://tts.example.com:65536"])(
    "is refused with the URL %s",
    (url) => {
      expect(() => deploymentOf({ keys: { sqlite }, dashboard: { url } })).toThrow("invalid spec");
    },
  );

  it("gets the settings of single sign-on, and the client secret in a file", () => {
    const oidc = {
      issuer: "https://login.example.com:8443/realms/staff",
      clientId: "tts",
      clientSecretRef: { name: "oidc" },
      caSecretRef: { name: "authority", key: "root.pem" },
      name: "Staff",
      scopes: ["openid", "groups"],
      groupsClaim: "roles",
      groups: [
        { group: "admins", role: "owner" },
        { group: "speech", role: "member", team: "blue" },
      ],
    };
    const dashboard = { url: "https://tts.example.com", oidc };
    const { env, volumeAt } = deploymentOf({ keys: { sqlite }, dashboard });
    expect(env).toMatchObject({
      SVC_TTS_OIDC_ISSUER: "https://login.example.com:8443/realms/staff",
      SVC_TTS_OIDC_CLIENT_ID: "tts",
      SVC_TTS_OIDC_CLIENT_SECRET_FILE: "/var/run/svc-tts/oidc/client-secret",
      SVC_TTS_OIDC_CA_FILE: "/var/run/svc-tts/oidc-ca/ca.crt",
      SVC_TTS_OIDC_NAME: "Staff",
      SVC_TTS_OIDC_SCOPES: "openid groups",
      SVC_TTS_OIDC_GROUPS_CLAIM: "roles",
      SVC_TTS_OIDC_GROUPS: JSON.stringify(oidc.groups),
    });
    expect(volumeAt("/var/run/svc-tts/oidc")?.secret).toMatchObject({
      secretName: "oidc",
      optional: true,
      items: [{ key: "client-secret", path: "client-secret" }],
    });
    expect(volumeAt("/var/run/svc-tts/oidc-ca")?.secret).toMatchObject({
      secretName: "authority",
      items: [{ key: "root.pem", path: "ca.crt" }],
    });
  });

  it.each(["http://login.example.com", "https://login.example.com?x", "https://login.example.com:99999"])(
    "is refused with an identity provider at %s",
    (issuer) => {
      const dashboard = { url: "https://tts.example.com", oidc: { issuer, clientId: "tts" } };
      expect(() => deploymentOf({ keys: { sqlite }, dashboard })).toThrow("invalid spec");
    },
  );
});
