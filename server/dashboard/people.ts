import { AccountError } from "../store/accounts.ts";
import { type Html, html } from "./html.ts";
import type { Passwords } from "./passwords.ts";

const shortest = 12;
const longest = 256;
const plainName = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,63}$/u;

/** @returns in lower case. @throws AccountError */
export function readPersonName(given: string): string {
  const name = findPersonName(given);
  if (name !== undefined) return name;
  throw new AccountError(
    "A name is 1 to 64 letters, digits and ._@+-, and begins with a letter or digit; an e-mail address is one.",
  );
}

/** @returns in lower case; undefined where it is no name. */
export function findPersonName(given: string): string | undefined {
  const name = given.normalize("NFC").toLowerCase();
  return plainName.test(name) ? name : undefined;
}

/** @returns what is kept of it. @throws AccountError when it may not be used. */
export async function choosePassword(passwords: Passwords, name: string, given: string): Promise<string> {
  const length = [...given].length;
  if (length < shortest || length > longest) {
    throw new AccountError(`A password has ${shortest} to ${longest} characters; this one has ${length}.`);
  }
  if (given.toLowerCase().includes(name) && length < name.length + shortest) {
    throw new AccountError("The password is the name and little more; choose another.");
  }
  if (new Set(given).size < 5) throw new AccountError("The password repeats itself; choose another.");
  return passwords.hash(given);
}

export function newPasswordField(): Html {
  return html`<label for="password">Password</label>
<input id="password" name="password" type="password" required minlength="${shortest}" maxlength="${longest}" autocomplete="new-password" aria-describedby="password-help">
<p class="help" id="password-help">${shortest} characters or more; a few words do well.</p>`;
}
