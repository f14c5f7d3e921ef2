import { env, otelEnv } from "../../config/contract/names.ts";

/** The text that replaces secrets. */
const redacted = "[redacted]";

/**
 * Patterns of secrets, which are replaced in all texts of a bundle. The first group of a pattern, if any, is
 * kept.
 */
const forms: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
  /\bsvc_[A-Za-z0-9]{16,}/g,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /\b((?:bearer|basic) +)[\w.~+/=-]{6,}/gi,
  /([a-z][a-z0-9+.-]*:\/\/)[^\s/@"']*:[^\s/@"']+(?=@)/gi,
  /((?:pass(?:word|wd)?|secret|token|api[-_]?key|credential|signature|authorization)"?(?:=|: ?)"?)[^\s"',;&[{]{4,}/gi,
  // This pattern matches a shared access signature of Azure Storage.
  /([?&](?:sig|code)=)[^\s"'&]+/gi,
  // This pattern matches keys of well-known services: Hugging Face, OpenAI, GitHub and AWS.
  /\b(?:hf_|sk-|gh[pousr]_|github_pat_|AKIA)[\w-]{8,}/g,
];

/** Matches flags with a secret value in the next argument, such as `--api-key` and `--hf-token`. */
const secretFlag = /^--?[\w-]*(?:pass(?:word|wd)?|secret|token|key|credentials?|authorization|auth)$/i;
const plainFlag = /^--?(?:max|num|min)[\w-]*tokens?$|^--?tokenizer$/i;

/** Variables that contain settings. The values of all other variables count as secrets. */
const secretVariables: readonly string[] = [env.apiKey, env.valkeyPassword];
const plainVariables = new Set<string>(
  [...Object.values(env), ...Object.values(otelEnv)].filter((name) => !secretVariables.includes(name)),
);

const secretField = /(password|passwd|secret|token|apikey|api_key|credentials?|authorization|privatekey)$/i;
const copyOfTheObject = "kubectl.kubernetes.io/last-applied-configuration";
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
    const all = values.flatMap((value) => [value, ...value.split(/\r?\n/)]).map((value) => value.trim());
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
      ([name]) => name !== "managedFields" && name !== copyOfTheObject,
    );
    return Object.fromEntries(kept.map(([name, child]) => [name, this.object(child, name)]));
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
