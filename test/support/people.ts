import { Visitor } from "./visitor.ts";

/** Somebody whom the owner has added, signed in. */
export async function joined(
  owner: Visitor,
  url: string,
  { name, role, team, password }: Readonly<Record<"name" | "role" | "team" | "password", string>>,
): Promise<Visitor> {
  await owner.get("/dashboard/people");
  const page = await owner.post("/dashboard/people", { name, role, team });
  const link = /join\?link=([\w-]+)/.exec(page.text)?.[1] ?? "";
  const visitor = new Visitor(url);
  await visitor.post("/dashboard/join", { link, password });
  return visitor;
}
