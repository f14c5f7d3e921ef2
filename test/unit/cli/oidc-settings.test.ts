import { describe, expect, it } from "vitest";
import { env } from "../../../config/contract/names.ts";
import { readApiSettings } from "../../../server/cli/settings/settings.ts";

const dashboard = {
  [env.routingFile]: "routing.json",
  [env.database]: "db",
  [env.dashboardUrl]: "https://tts.example.com",
};
const requiredOnly = {
  ...dashboard,
  [env.oidcIssuer]: "https://login.example.com/realms/staff",
  [env.oidcClientId]: "svc-tts",
};

describe("the settings of single sign-on", () => {
  it("require only an issuer and a client, and have no groups by default", () => {
    expect(readApiSettings(dashboard).dashboard?.oidc).toBeUndefined();
    expect(readApiSettings(requiredOnly).dashboard?.oidc).toEqual({
      issuer: "https://login.example.com/realms/staff",
      clientId: "svc-tts",
      clientSecretFile: undefined,
      caFile: undefined,
      name: "login.example.com",
      scopes: "openid profile email",
      groupsClaim: "groups",
      groups: [],
    });
  });

  it("map groups with any characters in their names to roles", () => {
    const groups = [
      { group: "CN=admins,OU=it", role: "owner" },
      { group: "speech", role: "member", team: "blue" },
    ];
    const more = {
      [env.oidcGroups]: JSON.stringify(groups),
      [env.oidcName]: "Staff",
      [env.oidcScopes]: "openid",
    };
    expect(readApiSettings({ ...requiredOnly, ...more }).dashboard?.oidc).toMatchObject({
      groups,
      name: "Staff",
      scopes: "openid",
    });
  });

  it.each([
    [
      { [env.oidcIssuer]: "login.example.com" },
      'SVC_TTS_OIDC_ISSUER must be an https URL, such as https://login.example.com/realms/staff; it is "login',
    ],
    [{ [env.oidcIssuer]: "http://login.example.com" }, "SVC_TTS_OIDC_ISSUER must be an https URL"],
    [{ [env.oidcIssuer]: "https://a:b@login.example.com" }, "SVC_TTS_OIDC_ISSUER must be an https URL"],
    [{ [env.oidcClientId]: "" }, "SVC_TTS_OIDC_ISSUER needs SVC_TTS_OIDC_CLIENT_ID"],
    [{ [env.dashboardUrl]: "" }, "SVC_TTS_OIDC_ISSUER needs SVC_TTS_DASHBOARD_URL"],
    [{ [env.oidcScopes]: "profile" }, 'SVC_TTS_OIDC_SCOPES must contain the scope openid; it is "profile".'],
    [
      { [env.oidcGroups]: "admins=owner" },
      "SVC_TTS_OIDC_GROUPS must be a JSON list of groups and their roles",
    ],
    [{ [env.oidcGroups]: '{"group":"a","role":"owner"}' }, "SVC_TTS_OIDC_GROUPS must be a JSON list"],
    [{ [env.oidcGroups]: '[{"group":"a","role":"root"}]' }, "the role must be one of owner, member, viewer"],
    [{ [env.oidcGroups]: '[{"group":"a","role":"member"}]' }, "every role except owner needs a team"],
    [
      { [env.oidcGroups]: '[{"group":"a","role":"member","team":"<b>"}]' },
      "SVC_TTS_OIDC_GROUPS must be a JSON list",
    ],
    [
      { [env.oidcGroups]: '[{"group":"a","role":"owner","teams":"b"}]' },
      "SVC_TTS_OIDC_GROUPS must be a JSON list",
    ],
  ])("refuse %o and name the variable, the value and the allowed values", (more, message) => {
    expect(() => readApiSettings({ ...requiredOnly, ...more })).toThrow(message);
  });
});
