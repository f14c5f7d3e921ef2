/** Acts like a browser that sends forms and stores cookies. It does not follow redirects. */
export class Visitor {
  readonly #url: string;
  #cookies = new Map<string, string>();
  #page = "";

  /** @param url the URL of the server */
  constructor(url: string) {
    this.#url = url;
  }

  /** The cookies of the browser, as in the header `cookie`. A test may change them. */
  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  set cookie(header: string) {
    this.#cookies = new Map();
    for (const cookie of header.split("; ")) this.#keep(cookie);
  }

  #keep(cookie: string): void {
    const [, name, value = ""] = /^([^=;]+)=([^;]*)/.exec(cookie) ?? [];
    if (name !== undefined && value === "") this.#cookies.delete(name);
    else if (name !== undefined) this.#cookies.set(name, value);
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Page> {
    return this.#send(path, { method: "GET", headers });
  }

  /** Sends a form with the CSRF token of the page that was loaded last. */
  post(path: string, fields: Readonly<Record<string, string>>, headers: Record<string, string> = {}) {
    const csrf = this.#token();
    return this.#send(path, {
      method: "POST",
      body: new URLSearchParams({ ...(csrf !== undefined && { csrf }), ...fields }),
      headers: { "sec-fetch-site": "same-origin", ...headers },
    });
  }

  /** Sends a form with a file and the CSRF token of the page that was loaded last. */
  upload(path: string, fields: Readonly<Record<string, string>>, file: string | Uint8Array<ArrayBuffer>) {
    const form = new FormData();
    const all = { csrf: this.#token() ?? "", ...fields };
    for (const [name, value] of Object.entries(all)) form.append(name, value);
    form.append("file", new Blob([file]), "lexicon.pls");
    return this.#send(path, { method: "POST", body: form, headers: { "sec-fetch-site": "same-origin" } });
  }

  #token(): string | undefined {
    return /name="csrf" value="([^"]+)"/.exec(this.#page)?.[1];
  }

  async #send(path: string, init: RequestInit): Promise<Page> {
    const response = await fetch(`${this.#url}${path}`, {
      ...init,
      redirect: "manual",
      headers: { accept: "text/html", cookie: this.cookie, ...init.headers },
    });
    const text = await response.text();
    const cookies = response.headers.getSetCookie();
    for (const cookie of cookies) this.#keep(cookie);
    if (text.includes("<html")) this.#page = text;
    return { status: response.status, headers: response.headers, text, setCookie: cookies[0] };
  }
}

export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly setCookie: string | undefined;
}

/** Adds a user as the owner, and signs the user in. Returns the browser of the new user. */
export async function addSignedInUser(
  owner: Visitor,
  url: string,
  { name, role, team, password }: Readonly<Record<"name" | "role" | "team" | "password", string>>,
): Promise<Visitor> {
  const link = await invited(owner, { name, role, team });
  const visitor = new Visitor(url);
  await visitor.post("/dashboard/join", { link, password });
  return visitor;
}

/** Adds a user. Returns the secret of the invitation link. */
export async function invited(owner: Visitor, person: Readonly<Record<string, string>>): Promise<string> {
  await owner.get("/dashboard/people");
  const { text } = await owner.post("/dashboard/people", person);
  return /join\?link=([\w-]+)/.exec(text)?.[1] ?? "";
}

/** Creates an API key. Returns the key, or a text with the status if the request failed. */
export async function newKey(
  visitor: Visitor,
  name: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  await visitor.get("/dashboard/keys");
  const page = await visitor.post("/dashboard/keys", { name, scopes: "tts:write", ...more });
  return keyOn(page) ?? `no key: ${page.status}`;
}

/** Returns the new API key that a page shows. */
export function keyOn({ text }: Page): string | undefined {
  return /id="new-key">(svc_\w+)</.exec(text)?.[1];
}
