import { env, otelEnv } from "../../config/contract/names.ts";

/** The text that replaces secrets. */
const redacted = "[redacted]";

/** Words at the end of the name of a field, a variable, a header or a flag that has a secret value. */
const secretWords = [
  "pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|signature|authorization",
  "(?:api|access|secret|private|account|shared|signing|encryption|master)[-_ ]?key",
].join("|");

/**
 * Patterns of secrets, which are replaced in all texts of a bundle. The first group of a pattern, if any, is
 * kept.
 */
const forms: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
  // These are the beginnings of private keys in PEM, encoded in base64. The beginning of a certificate is
  // different.
  /\bLS0tLS1CRUdJTi(?:BQUklW|BSU0Eg|BFQyBQ|BPUEVO|BFTkNS|BEU0Eg)[\w+/=]*/g,
  /\bsvc_[A-Za-z0-9]{16,}/g,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /\b((?:bearer|basic) +)[\w.~+/=-]{6,}/gi,
  // The credentials of a URL. Digits after the colon are a port and not a password.
  /([a-z][a-z0-9+.-]*:\/\/)[^\s/@"':]*:(?!\d{1,5}[/?#])[^\s@"']+(?=@)/gi,
  /(https?:\/\/)[^\s/@"':]+(?=@)/gi,
  // A quoted value in JSON may contain spaces.
  new RegExp(`("[\\w.-]*(?:${secretWords})\\\\?" ?: ?\\\\?")(?:[^"\\\\]|\\\\(?!").)+`, "gi"),
  new RegExp(`((?:${secretWords})"?(?:=|: ?)"?)[^\\s"',;&[{]{4,}`, "gi"),
  /\b((?:set-)?cookie"?: ?"?)[^\r\n"]{4,}/gi,
  // The value of a flag in a shell command, and the credentials of curl.
  new RegExp(`((?:^|\\s)--?(?!max|num|min)[\\w-]*(?:${secretWords}) +)(?!-)[^\\s"';&|]+`, "gi"),
  /(\s(?:-u|--user)[ =])[^\s:"']+:[^\s"']+/g,
  // A shared access signature of Azure Storage.
  /([?&](?:sig|code)=)[^\s"'&]+/gi,
  // Keys of well-known services: Hugging Face, OpenAI, GitHub, GitLab, NVIDIA, Docker, Slack, Google and AWS.
  /\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|nvapi-|dckr_pat_|xox[abprs]-|AIza|AKIA|ASIA)[\w-]{8,}/g,
];

/** Matches flags with a secret value in the next argument, such as `--api-key` and `--hf-token`. */
const secretFlag =
  /^--?[\w-]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|key|credentials?|authorization|auth)$/i;
const plainFlag = /^--?(?:max|num|min)[\w-]*tokens?$|^--?tokenizer$/i;

/** Variables of the server that contain a secret. */
const secretVariables: readonly string[] = [env.apiKey, env.valkeyPassword];
/** Variables that contain settings. The values of all other variables count as secrets. */
const plainVariables = new Set<string>(
  [...Object.values(env), ...Object.values(otelEnv)].filter((name) => !secretVariables.includes(name)),
);

const secretField = new RegExp(`(?:${secretWords})$`, "i");
/** Annotations in which kubectl, Rancher and other tools keep a copy of the whole object. */
const copyOfTheObject = /last-applied|\/applied$/;
/** Shorter values are not replaced, because they may be ordinary words. */
const shortestValue = 6;

/**
 * Removes secrets from texts and objects. It finds secrets by pattern, by the name of the field or variable,
 * and by the known `values`. It finds a value, and each line of a value, in plain text, in base64, and
 * escaped for JSON and URLs.
 */
export class Redactor {
  readonly #values: readonly string[];

  constructor(values: readonly string[]) {
    const all = values.flatMap(partsOf).map((value) => value.trim());
    const spelled = all.filter(({ length }) => length >= shortestValue).flatMap(spellings);
    this.#values = [...new Set(spelled)].sort((one, other) => other.length - one.length);
  }

  text(text: string): string {
    const clean = this.#values.reduce((rest, value) => rest.replaceAll(value, redacted), text);
    return forms.reduce(
      (rest, form) =>
        rest.replace(form, (_all, kept: unknown) => `${typeof kept === "string" ? kept : ""}${redacted}`),
      clean,
    );
  }

  /** Returns a copy of plain JSON without secrets, and without fields that only programs read. */
  object(value: unknown, field = ""): unknown {
    if (typeof value === "string") return this.#string(value, field);
    if (Array.isArray(value)) {
      return value.map((item, index) => {
        if (field === "env") return this.#variable(item);
        return isSecretArgument(value[index - 1], item) ? redacted : this.object(item);
      });
    }
    if (typeof value !== "object" || value === null) return value;
    const kept = Object.entries(value).filter(
      ([name]) => name !== "managedFields" && !copyOfTheObject.test(name),
    );
    // The name of a header or a parameter may say that its value is a secret.
    const { name: label } = value as { name?: unknown };
    const hasSecret = typeof label === "string" && secretField.test(label);
    return Object.fromEntries(
      kept.map(([name, child]) => [
        name,
        hasSecret && name === "value" && typeof child === "string" ? redacted : this.object(child, name),
      ]),
    );
  }

  #string(value: string, field: string): string {
    if (secretField.test(field)) return redacted;
    if (!/^\s*[{[]/.test(value)) return this.text(value);
    // A podTemplate, and the template in an annotation, are JSON in a string.
    try {
      return this.text(JSON.stringify(this.object(JSON.parse(value))));
    } catch {
      return field === "podTemplate" ? redacted : this.text(value);
    }
  }

  #variable(item: unknown): unknown {
    const { name, value, ...rest } = (item ?? {}) as { name?: unknown; value?: unknown };
    const shown = typeof value === "string" && plainVariables.has(String(name)) ? this.text(value) : redacted;
    return { name, ...(value !== undefined && { value: shown }), ...(this.object(rest) as object) };
  }
}

/** Shorter parts of a document in a Secret are often ordinary words. */
const shortestPart = 8;

/**
 * Returns the value of a Secret, its lines, and the values in it if it is a document: the texts in JSON, the
 * values of `name: value` and `name=value`, and the password of a URL.
 */
function partsOf(value: string): string[] {
  const lines = value.split(/\r?\n/);
  const entries = lines.flatMap(
    (line) => /^[\s-]*["']?[\w.-]+["']?\s*[:=]\s*["']?(.+?)["']?,?\s*$/.exec(line)?.[1] ?? [],
  );
  const texts = textsIn(value);
  const inner = [...entries, ...texts].filter(({ length }) => length >= shortestPart);
  return [value, ...lines, ...inner, ...[value, ...entries, ...texts].flatMap(passwordsIn)];
}

function textsIn(value: string): string[] {
  if (!/^\s*[{[]/.test(value)) return [];
  const texts: string[] = [];
  try {
    JSON.parse(value, (_name, item: unknown) => {
      if (typeof item === "string") texts.push(item);
    });
  } catch {
    // The value is not JSON, so only the whole value and its lines are redacted.
    return [];
  }
  return texts;
}

function passwordsIn(value: string): string[] {
  const found = /^\s*[a-z][a-z0-9+.-]*:\/\/[^\s:@/]*:(\S+)@/i.exec(value)?.[1];
  if (found === undefined) return [];
  try {
    return [found, decodeURIComponent(found)];
  } catch {
    // The password contains a percent sign that is not part of an encoding.
    return [found];
  }
}

/** Returns whether the value follows a secret flag, as in `--api-key sk-…`. */
function isSecretArgument(flag: unknown, value: unknown): boolean {
  if (typeof flag !== "string" || typeof value !== "string" || value.startsWith("--")) return false;
  return secretFlag.test(flag) && !plainFlag.test(flag);
}

function spellings(value: string): string[] {
  return [
    value,
    Buffer.from(value).toString("base64"),
    Buffer.from(`${value}\n`).toString("base64"),
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
  ];
}
