import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ModelKind } from "../../../config/contract/models.ts";
import { env } from "../../../config/contract/names.ts";
import type { Command } from "../../../lib/command-line.ts";
import { defaultSocketOptions } from "../../../server/api/request/socket-options.ts";
import { keysCommands } from "../../../server/cli/keys.ts";
import { licenseCommands } from "../../../server/cli/license.ts";
import { prepareRunFiles } from "../../../server/cli/run-files.ts";
import type { Environment } from "../../../server/cli/settings/environment.ts";
import { readApiSettings, readModelSettings, readPortOffset } from "../../../server/cli/settings/settings.ts";
import { readTelemetry } from "../../../server/cli/settings/telemetry.ts";
import { readTracing } from "../../../server/cli/settings/tracing.ts";
import { digestKey, isWellFormedKey } from "../../../server/store/keys/key.ts";
import { parseKeyFile } from "../../../server/store/keys/key-file.ts";
import { KeyIndex } from "../../../server/store/keys/key-store.ts";
import { folderOfTests } from "../../support/folder.ts";
import { runInProcess } from "../../support/server/command-line.ts";

const commands: readonly Command[] = [...licenseCommands, ...keysCommands];
const folder = folderOfTests("cli");
const run = (...words: string[]) => runInProcess(commands, words);

describe("the command line", () => {
  it("prints help for all commands, for a group and for a command", async () => {
    expect(await run("--help")).toMatchObject({ code: 0, out: expect.stringContaining("keys create") });
    expect((await run("license", "--help")).out).not.toContain("keys create");
    const help = await run("license", "issue", "--help");
    expect(help).toMatchObject({ code: 0, out: expect.stringMatching(/--days DAYS.*\(default 365\)/) });
  });

  it("prints help for the command help, and the version for --version", async () => {
    expect(await run("help")).toEqual(await run("--help"));
    expect(await run("help", "license", "issue")).toEqual(await run("license", "issue", "--help"));
    expect(await run("--version")).toEqual({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      err: "",
    });
  });

  it.each([
    [[], "no command was given"],
    [["license"], "`license` is not a complete command"],
    [["license", "sell"], "unknown command `license sell`"],
    [
      ["license", "issue", "--key", "x", "--licensee", "x", "--days", "-1"],
      '--days must be an integer from 1 to 1000000; it is "-1"',
    ],
    [["sing"], "unknown command `sing`"],
    [["keys", "create", "--nmae", "x"], "it takes --name, --scopes, --expires, --team"],
    [["keys", "create"], "--name NAME is required"],
    [["keys", "create", "--name", "x", "--scopes", "root"], '"root" is not a scope'],
    [["keys", "create", "--name", "x", "--expires", "2001-01-01"], "must be a future time"],
    [["license", "issue", "--key", "/nowhere", "--licensee", "x"], "/nowhere, which does not exist"],
    [
      ["license", "issue", "--key", "x", "--licensee", "x", "--days", "0"],
      "--days must be an integer from 1",
    ],
    [["license", "issue", "--key", "x", "--licensee", "x", "--models", "gpt"], '"gpt" is not a model'],
  ])("refuses %j and explains what is allowed", async (words, message) => {
    expect(await run(...words)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message) });
  });
});

describe("keys create", () => {
  it("prints only the key on standard output, and stores only its digest", async () => {
    const file = join(folder, "keys.yaml");
    const create = (...words: string[]) => run("keys", "create", "--file", file, "--name", ...words);
    const first = await create("app");
    const second = await create("other", "--scopes", "tts:write,admin");
    expect(isWellFormedKey(first.out)).toBe(true);
    expect(first.err).toBe(
      `The API key app was created. It is shown only once. ${file} contains the digest of the key.`,
    );
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(first.out);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(new KeyIndex(parseKeyFile(text)).find(digestKey(second.out))?.scopes).toEqual([
      "tts:write",
      "admin",
    ]);
    expect(await create("app")).toMatchObject({ code: 2, err: expect.stringContaining("named app already") });
  });

  it("prints the entry to paste if no file is given", async () => {
    const { out, err } = await run("keys", "create", "--name", "app", "--expires", "2099-01-01");
    const entry = err.slice(err.indexOf("keys:\n"));
    expect(new KeyIndex(parseKeyFile(entry)).find(digestKey(out))).toMatchObject({
      name: "app",
      expiresAt: Date.UTC(2099, 0),
    });
  });
});

describe("the license commands", () => {
  it("create a key, issue a license, and detect a changed license", async () => {
    const at = (name: string) => join(folder, "vendor", name);
    const keygen = () => run("license", "keygen", "--out", join(folder, "vendor"));
    expect((await keygen()).code).toBe(0);
    expect(statSync(at("private.jwk")).mode & 0o777).toBe(0o600);
    expect(readFileSync(at("jwks.json"), "utf8")).not.toContain('"d"');
    expect((await keygen()).err).toContain("already exists");
    const signWith = (key: string, ...words: string[]) =>
      run("license", "issue", "--key", key, "--licensee", "ACME", ...words);
    const issued = await signWith(at("private.jwk"), "--models", "mist", "--days", "30");
    const license = at("license.jwt");
    writeFileSync(license, issued.out);
    expect((await signWith(at("jwks.json"))).err).toContain("contains only public keys");
    const { d: _secret, ...shared } = JSON.parse(readFileSync(at("private.jwk"), "utf8"));
    writeFileSync(at("public.jwk"), JSON.stringify(shared));
    expect((await signWith(at("public.jwk"))).err).toContain("contains only public keys");
    writeFileSync(at("other.jwk"), "7");
    expect((await signWith(at("other.jwk"))).err).toContain("contains no Ed25519 key");
    const inspect = () => run("license", "inspect", "--license", license, "--jwks", at("jwks.json"));
    const inspected = await inspect();
    expect(inspected.code).toBe(0);
    expect(JSON.parse(inspected.out)).toMatchObject({
      state: "valid",
      claims: { sub: "ACME", models: ["mist"], maxStreams: 256, graceDays: 7 },
    });
    // This changes the first character of the signature. The last character has unused bits.
    const forged = issued.out.replace(/\.(.)(?=[^.]*$)/, (_, first) => (first === "A" ? ".B" : ".A"));
    writeFileSync(license, forged);
    expect((await inspect()).code).toBe(1);
  });
});

const tracesOn = { OTEL_TRACES_EXPORTER: "otlp" };

describe("the settings in environment variables", () => {
  const routing = { [env.routingFile]: "/routing.json" };
  const dashboard = { ...routing, [env.database]: "db" };
  it("have defaults, also for variables that are set to an empty string", () => {
    expect(readApiSettings({ ...routing, [env.port]: "" })).toMatchObject({ port: 8000, logLevel: "info" });
    expect(readApiSettings({ ...routing, [env.maxBodyBytes]: "2048" }).limits).toMatchObject({
      bodyBytes: 2048,
      jsonAudioBytes: 64 * 1024 * 1024,
      highestRate: 384_000,
    });
    expect(readApiSettings(routing).trustedProxies).toEqual([]);
    expect(readApiSettings({ ...routing, [env.apiKey]: "sixteen-letters-" }).apiKey).toBe("sixteen-letters-");
    for (const url of ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000"])
      expect(readApiSettings({ ...dashboard, [env.dashboardUrl]: url }).dashboard).toMatchObject({ url });
    const proxies = { ...routing, [env.trustedProxies]: "10.0.0.0/8, 2001:db8::/32,192.0.2.1" };
    expect(readApiSettings(proxies).trustedProxies).toEqual(["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"]);
    expect(readModelSettings("arcana", {})).toMatchObject({ tier: "arcana", port: 8080 });
  });

  it("of TLS are two files and a port", () => {
    expect(readApiSettings(routing).tls).toBeUndefined();
    const files = { [env.tlsCert]: "/tls.crt", [env.tlsKey]: "/tls.key" };
    const tls = { certFile: "/tls.crt", keyFile: "/tls.key", port: 8443 };
    expect(readApiSettings({ ...routing, ...files }).tls).toEqual(tls);
  });

  it("of WebSockets include limits, and aliases in addition to the names of published clients", () => {
    expect(readApiSettings(routing).sockets).toEqual(defaultSocketOptions);
    const { sockets } = readApiSettings({
      ...routing,
      [env.keySockets]: "5",
      [env.keySocketsPerSecond]: "2",
      [env.socketClearMode]: "buffer",
      [env.modelAliases]: '{"coda": "mist", "vits": "mistv2"}',
      [env.voiceAliases]: '{"cove": "alan", "nova": ["emma", "susan"]}',
    });
    expect(sockets).toMatchObject({ perKey: 5, newPerSecond: 2, clearMode: "buffer" });
    expect(sockets?.aliases?.models).toEqual({
      ...{ coda: "mist", vits: "mistv2" },
      ...{ mistv1: "mist", mistv3: "mist" },
    });
    expect(sockets?.aliases?.voices).toMatchObject({ cove: ["alan"], nova: ["emma", "susan"] });
    expect(sockets?.aliases?.voices).toHaveProperty("luna");
  });

  it.each([
    [{ ...routing, [env.port]: "http" }, 'SVC_TTS_PORT must be an integer from 0 to 65535; it is "http".'],
    [{ ...routing, [env.maxHeldBytes]: "1000" }, "SVC_TTS_MAX_HELD_BYTES must be an integer from 134217728"],
    [{ ...routing, [env.drainSeconds]: "-1" }, "SVC_TTS_DRAIN_SECONDS must be an integer"],
    ...["10.0.0.0/0", "10.0.0.0/33", "10.0.0", "proxy", "::1/129", "10.0.0.0/8/8"].map(
      (wrong): [Record<string, string>, string] => [
        { ...routing, [env.trustedProxies]: `192.0.2.1, ${wrong}` },
        `SVC_TTS_TRUSTED_PROXIES must be addresses and networks separated by commas, such as 10.0.0.0/8,2001:db8::/32, and must not cover all addresses; it contains "${wrong}".`,
      ],
    ),
    [
      { ...dashboard, [env.dashboardUrl]: "tts.example.com" },
      'SVC_TTS_DASHBOARD_URL must be the URL at which users open this server, such as https://tts.example.com, without a path; it is "tts.example.com".',
    ],
    [
      { ...dashboard, [env.dashboardUrl]: "https://tts.example.com/speech" },
      "SVC_TTS_DASHBOARD_URL must be the URL at which users open this server",
    ],
    [
      { ...dashboard, [env.dashboardUrl]: "https://tts.example.com", [env.auditDays]: "0" },
      "SVC_TTS_AUDIT_DAYS must be an integer from 1 to 36500",
    ],
    [
      { ...routing, [env.dashboardUrl]: "https://tts.example.com" },
      "SVC_TTS_DASHBOARD_URL needs SVC_TTS_DATABASE; set it to the database for users and keys.",
    ],
    [
      { ...dashboard, [env.dashboardUrl]: "http://tts.example.com" },
      "SVC_TTS_DASHBOARD_URL must start with https://",
    ],
    [
      { ...routing, [env.apiKey]: "fifteen-letters" },
      "SVC_TTS_API_KEY must have at least 16 characters, because a shorter key can be guessed; it has 15.",
    ],
    [
      { ...routing, [env.maxSamplingRate]: "8000" },
      "SVC_TTS_MAX_SAMPLING_RATE must be an integer from 24000",
    ],
    ...["coda", "[]", '{"coda": "vits"}'].map((wrong): [Record<string, string>, string] => [
      { ...routing, [env.modelAliases]: wrong },
      `SVC_TTS_MODEL_ALIASES must be a JSON object such as {"coda": "arcana"}; it is ${JSON.stringify(wrong)}.`,
    ]),
    ...['{"lyra": []}', '{"lyra": [5]}', '{"lyra": ""}'].map((wrong): [Record<string, string>, string] => [
      { ...routing, [env.voiceAliases]: wrong },
      "SVC_TTS_VOICE_ALIASES must be a JSON object",
    ]),
    [{ ...routing, [env.keySockets]: "0" }, "SVC_TTS_KEY_SOCKETS must be an integer from 1"],
    [{ ...routing, [env.tlsCert]: "/tls.crt" }, "SVC_TTS_TLS_CERT is set, but SVC_TTS_TLS_KEY is not"],
    [{ ...routing, [env.tlsKey]: "/tls.key" }, "SVC_TTS_TLS_KEY is set, but SVC_TTS_TLS_CERT is not"],
    [{ ...routing, [env.tlsPort]: "65536" }, "SVC_TTS_TLS_PORT must be an integer from 0"],
    [{ ...routing, [env.socketClearMode]: "all" }, "SVC_TTS_SOCKET_CLEAR_MODE must be one of abort, buffer"],
    [{ ...routing, [env.logLevel]: "loud" }, "SVC_TTS_LOG_LEVEL must be one of trace"],
    [{}, "neither is set"],
    [{ ...routing, [env.routingConfigMap]: "x" }, "both are set"],
    [{ [env.routingConfigMap]: "x", [env.namespace]: "n" }, "KUBERNETES_SERVICE_HOST is not set"],
  ])("refuse %o and name the variable, the value and the allowed values", (environment, message) => {
    expect(() => readApiSettings(environment)).toThrow(message);
  });

  it("select the generator of arcana", () => {
    expect(readModelSettings("arcana", { [env.arcanaGenerator]: "flite" })).toMatchObject({
      generator: "flite",
    });
    expect(() => readModelSettings("arcana", { [env.arcanaGenerator]: "big" })).toThrow(
      'SVC_TTS_ARCANA_GENERATOR must be one of mini, flite, vllm, kokoro; it is "big".',
    );
  });

  it.each<[string, ModelKind, Record<string, string>, object | undefined]>([
    ["none without a folder", "mist", { [env.prefer]: "quality" }, undefined],
    ["none by default", "mist", {}, { naturalModels: [], fallsBack: false }],
    [
      "the voices of mist if mist prefers quality",
      "mist",
      { [env.prefer]: "quality" },
      { naturalModels: ["mist"] },
    ],
    ["none of arcana if mist prefers quality", "arcana", { [env.prefer]: "quality" }, { naturalModels: [] }],
    [
      "the voices of arcana if its generator is Kokoro",
      "arcana",
      { [env.arcanaGenerator]: "kokoro" },
      { naturalModels: ["arcana"] },
    ],
    [
      "none of mist if the generator of arcana is Kokoro",
      "mist",
      { [env.arcanaGenerator]: "kokoro" },
      { naturalModels: [] },
    ],
    ["with a fallback to built-in voices", "mist", { [env.voicesFallback]: "builtin" }, { fallsBack: true }],
    ["with a number of streams", "mist", { [env.voicesStreams]: "3" }, { streams: 3 }],
  ])("select the voices that natural voices replace: %s", (voicesReplaced, tier, environment, expected) => {
    const folder = voicesReplaced === "none without a folder" ? {} : { [env.modelsDir]: "/models" };
    const { voices } = readModelSettings(tier, { ...folder, ...environment });
    if (expected) expect(voices).toMatchObject(expected);
    else expect(voices).toBeUndefined();
  });

  it.each([
    [{ [env.prefer]: "speed" }, 'SVC_TTS_PREFER must be one of latency, quality; it is "speed".'],
    [{ [env.voicesFallback]: "flite" }, "SVC_TTS_VOICES_FALLBACK must be one of none, builtin"],
    [{ [env.voicesStreams]: "many" }, "SVC_TTS_VOICES_STREAMS must be an integer from 0 to 10000"],
  ])("refuse %o", (environment, message) => {
    expect(() => readModelSettings("mist", { [env.modelsDir]: "/models", ...environment })).toThrow(message);
  });

  it("require a folder of models if the generator of arcana is Kokoro", () => {
    const kokoro = { [env.arcanaGenerator]: "kokoro" };
    expect(() => readModelSettings("arcana", kokoro)).toThrow(
      "SVC_TTS_ARCANA_GENERATOR kokoro needs SVC_TTS_MODELS_DIR or SVC_TTS_VOICES_DIR",
    );
    expect(readModelSettings("mist", kokoro).voices).toBeUndefined();
  });

  it("enable traces only with OTEL_TRACES_EXPORTER=otlp", () => {
    expect(readTracing({}, "api")).toBeUndefined();
    expect(readTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }, "api")).toBeUndefined();
    expect(readTracing({ ...tracesOn, OTEL_TRACES_EXPORTER: "none" }, "api")).toBeUndefined();
    expect(readTracing({ ...tracesOn, OTEL_SDK_DISABLED: "TRUE" }, "api")).toBeUndefined();
  });

  it.each([
    [{}, { url: "http://localhost:4318/v1/traces", protocol: "http/protobuf", serviceName: "svc-tts-mist" }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "https://c:1/base/" }, { url: "https://c:1/base/v1/traces" }],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "https://c:1", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t:2/own" },
      { url: "http://t:2/own" },
    ],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" },
      { protocol: "http/json" },
    ],
    [
      { OTEL_RESOURCE_ATTRIBUTES: "service.name=ours, team=a%2Cb" },
      { serviceName: "ours", resourceAttributes: { "service.name": "ours", team: "a,b" } },
    ],
    [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=a", OTEL_SERVICE_NAME: "b" }, { serviceName: "b" }],
    [
      { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" },
      { sampler: { name: "traceidratio", ratio: 0.25 } },
    ],
  ])("read the OpenTelemetry variables %o", (environment, expected) => {
    expect(readTracing({ ...tracesOn, ...environment }, "mist")).toMatchObject(expected);
  });

  it.each([
    [{ OTEL_TRACES_EXPORTER: "zipkin" }, 'OTEL_TRACES_EXPORTER must be one of none, otlp; it is "zipkin".'],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      "OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/protobuf, http/json",
    ],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"],
    [{ OTEL_TRACES_SAMPLER: "sometimes" }, "OTEL_TRACES_SAMPLER must be one of always_on"],
    [{ OTEL_TRACES_SAMPLER_ARG: "2" }, 'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1; it is "2".'],
    [{ OTEL_RESOURCE_ATTRIBUTES: "team" }, "OTEL_RESOURCE_ATTRIBUTES must be name=value pairs"],
    [{ OTEL_RESOURCE_ATTRIBUTES: "team=%" }, "OTEL_RESOURCE_ATTRIBUTES must be name=value pairs"],
  ])("refuse the OpenTelemetry variables %o", (environment, message) => {
    expect(() => readTracing({ ...tracesOn, ...environment }, "api")).toThrow(message);
  });

  const metricsOn = { OTEL_COLLECTOR_ENDPOINT: "http://otel:4317" };

  it("enable metrics only for arcana with OTEL_COLLECTOR_ENDPOINT", () => {
    const telemetryOf = (tier: ModelKind, environment: Environment) =>
      readModelSettings(tier, environment).telemetry;
    expect(telemetryOf("arcana", { OTEL_COLLECTOR_PROTOCOL: "grpc" })).toBeUndefined();
    expect(telemetryOf("arcana", { ...metricsOn, OTEL_SDK_DISABLED: "true" })).toBeUndefined();
    expect(telemetryOf("mist", metricsOn)).toBeUndefined();
    expect(telemetryOf("arcana", metricsOn)).toEqual({
      protocol: "grpc",
      url: "http://otel:4317/",
      resourceAttributes: {},
      intervalMs: 15_000,
    });
  });

  it.each([
    ["grpc", "https://otel.example.com", "https://otel.example.com/"],
    ["grpc", "otel:14317", "http://otel:14317/"],
    ["grpc", "http://otel/any", "http://otel:4317/"],
    ["http/protobuf", "http://otel:4318", "http://otel:4318/v1/metrics"],
    ["http/protobuf", "http://otel", "http://otel:4318/v1/metrics"],
    ["http/protobuf", "http://otel:80/", "http://otel/v1/metrics"],
    ["http/json", "https://otel/base/", "https://otel/base/v1/metrics"],
    ["http/json", "http://[::1]:4318/v1/metrics", "http://[::1]:4318/v1/metrics"],
  ])("send metrics with protocol %s and endpoint %s to %s", (protocol, endpoint, url) => {
    const environment = { OTEL_COLLECTOR_PROTOCOL: protocol, OTEL_COLLECTOR_ENDPOINT: endpoint };
    expect(readTelemetry(environment)).toMatchObject({ protocol, url });
  });

  it.each([
    [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=a,team=b" }, { "service.name": "a", team: "b" }],
    [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=a", OTEL_SERVICE_NAME: "b" }, { "service.name": "b" }],
  ])("add the resource attributes of %o to metrics", (environment, resourceAttributes) => {
    expect(readTelemetry({ ...metricsOn, ...environment })?.resourceAttributes).toEqual(resourceAttributes);
  });

  it.each([
    [
      { OTEL_COLLECTOR_PROTOCOL: "http" },
      "OTEL_COLLECTOR_PROTOCOL must be one of grpc, http/protobuf, http/json",
    ],
    [
      { OTEL_COLLECTOR_ENDPOINT: "unix:///a" },
      "OTEL_COLLECTOR_ENDPOINT must be the address of an OpenTelemetry",
    ],
    [{ OTEL_RESOURCE_ATTRIBUTES: "team" }, "OTEL_RESOURCE_ATTRIBUTES must be name=value pairs"],
    [
      { OTEL_METRIC_EXPORT_INTERVAL: "0" },
      "OTEL_METRIC_EXPORT_INTERVAL must be an integer from 100 to 3600000",
    ],
  ])("refuse the metrics variables %o", (environment, message) => {
    expect(() => readTelemetry({ ...metricsOn, ...environment })).toThrow(message);
  });

  it("refuse a PORT_OFFSET that is not an integer", () => {
    expect(readPortOffset({ PORT_OFFSET: "100" })).toBe(100);
    expect(() => readPortOffset({ PORT_OFFSET: "ten" })).toThrow("PORT_OFFSET must be an integer");
  });
});

describe("the files of a run", () => {
  it("are created once, kept between runs, and readable only by their owner", async () => {
    const options = { folder: join(folder, "run"), ports: { mist: 8080, arcana: 8090 }, now: Date.now() };
    const first = await prepareRunFiles(options);
    const license = readFileSync(first.licenseFile, "utf8");
    const second = await prepareRunFiles(options);
    expect(second.key).toBe(first.key);
    expect(readFileSync(first.licenseFile, "utf8")).toBe(license);
    for (const path of [first.keysFile, first.licenseFile, first.routingFile, join(options.folder, "key")]) {
      expect(existsSync(path)).toBe(true);
      expect(statSync(path).mode & 0o077).toBe(0);
    }
    const aYearLater = await prepareRunFiles({ ...options, now: options.now + 366 * 86_400_000 });
    expect(readFileSync(aYearLater.licenseFile, "utf8")).not.toBe(license);
  });
});
