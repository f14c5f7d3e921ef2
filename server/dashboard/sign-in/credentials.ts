import { type Html, html } from "../html/html.ts";
import type { Texts } from "../languages/english.ts";
import { Refusal } from "../languages/refusal.ts";
import type { Passwords } from "./passwords.ts";

const shortest = 12;
const longest = 256;
const plainName = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{0,63}$/u;

/** Returns the name in lower case. @throws Refusal if the name is not valid. */
export function readPersonName(given: string): string {
  const name = findPersonName(given);
  if (name !== undefined) return name;
  throw new Refusal("invalid_request", ({ users }) => users.nameRule);
}

/** Returns the name in lower case, or undefined if the name is not valid. */
export function findPersonName(given: string): string | undefined {
  const name = given.normalize("NFC").toLowerCase();
  return plainName.test(name) ? name : undefined;
}

/** Returns the hash of a new password. @throws Refusal if the password is not allowed. */
export async function choosePassword(passwords: Passwords, name: string, given: string): Promise<string> {
  const length = [...given].length;
  if (length < shortest || length > longest) {
    throw new Refusal("invalid_request", ({ signIn }) => signIn.passwordLength(shortest, longest, length));
  }
  if (given.toLowerCase().includes(name) && length < name.length + shortest) {
    throw new Refusal("invalid_request", ({ signIn }) => signIn.passwordIsName);
  }
  if (new Set(given).size < 5) {
    throw new Refusal("invalid_request", ({ signIn }) => signIn.passwordRepeats);
  }
  return passwords.hash(given);
}

export function newPasswordField({ signIn }: Texts, label = signIn.password): Html {
  return html`<label for="password">${label}</label>
<input id="password" name="password" type="password" required minlength="${shortest}" maxlength="${longest}" autocomplete="new-password" aria-describedby="password-help">
<p class="help" id="password-help">${signIn.passwordHelp(shortest)}</p>`;
}
