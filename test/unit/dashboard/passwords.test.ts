import { expect, test } from "vitest";
import { html } from "../../../server/dashboard/html/html.ts";
import { createPasswords } from "../../../server/dashboard/sign-in/passwords.ts";

test("a password is stored as Argon2id with its own salt, and verified in any Unicode form", async () => {
  const passwords = createPasswords();
  const [one, other] = await Promise.all([
    passwords.hash("fünf kleine Mäuse"),
    passwords.hash("fünf kleine Mäuse"),
  ]);
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  expect(other).not.toBe(one);
  expect(await passwords.verify("fünf kleine Mäuse".normalize("NFD"), one)).toBe(true);
  expect(await passwords.verify("fünf kleine Mause", one)).toBe(false);
  expect(await passwords.verify("fünf kleine Mäuse", undefined)).toBe(false);
});

test("a hash of the reference implementation is verified", async () => {
  // Test vector of the C reference implementation: `argon2 somesalt -id -t 2 -m 16 -p 1` for "password".
  const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
  expect(await createPasswords().verify("password", hash)).toBe(true);
});

test("at most four passwords are hashed at once, because each takes 19 MiB", async () => {
  const passwords = createPasswords();
  const results = await Promise.allSettled(
    Array.from({ length: 6 }, () => passwords.hash("correct horse battery")),
  );
  expect(results.map(({ status }) => status).toSorted()).toEqual([
    ...Array(4).fill("fulfilled"),
    ...Array(2).fill("rejected"),
  ]);
});

test("a page shows user input as text and never executes it", () => {
  const name = `<script>"&'</script>`;
  expect(html`<p title="${name}">${[name, html`<b>${1}</b>`, false, undefined]}</p>`.text).toBe(
    '<p title="&#60;script&#62;&#34;&#38;&#39;&#60;/script&#62;">&#60;script&#62;&#34;&#38;&#39;&#60;/script&#62;<b>1</b></p>',
  );
});
