import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from "yaml";

/** One value of a chart that an administrator may set. */
interface Value {
  readonly path: string;
  readonly default: unknown;
  readonly comment: string;
}

/**
 * Returns the table of a chart's values for its README, with the comments of `values.yaml`. A map is one row
 * if its fields have no comments. Throws for a value without a comment.
 */
export function valuesTable(text: string): string {
  const { contents } = parseDocument(text);
  if (!isMap(contents)) throw new Error("values.yaml does not contain a map");
  const rows = [...valuesOf(contents, "")].map(
    ({ path, default: value, comment }) =>
      `| \`${path}\` | ${code(value)} | ${comment.replaceAll("|", "\\|")} |`,
  );
  return `| value | default | description |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
}

function* valuesOf(map: YAMLMap, path: string): Generator<Value> {
  for (const [index, pair] of map.items.entries()) {
    const name = isScalar(pair.key) ? String(pair.key.value) : "";
    const valuePath = path === "" ? name : `${path}.${name}`;
    const comment = commentOf(map, pair, index);
    if (isMap(pair.value) && hasComments(pair.value)) {
      yield* valuesOf(pair.value, valuePath);
      continue;
    }
    if (comment === "") throw new Error(`values.yaml has no comment for ${valuePath}`);
    yield { path: valuePath, default: toPlain(pair), comment };
  }
}

/**
 * Returns the comment of a value. The parser attaches the comment of a map's first field to the map. A
 * comment that an empty line follows describes the file, so it is left out.
 */
function commentOf(map: YAMLMap, { key }: Pair, index: number): string {
  const text =
    (isScalar(key) ? key.commentBefore : undefined) ?? (index === 0 ? map.commentBefore : undefined);
  const [about = ""] = (text ?? "").split(/\n\s*\n/).slice(-1);
  return about
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .trim();
}

function hasComments(map: YAMLMap): boolean {
  return map.items.some(
    (pair, index) => commentOf(map, pair, index) !== "" || (isMap(pair.value) && hasComments(pair.value)),
  );
}

function toPlain({ value }: Pair): unknown {
  return typeof value === "object" && value !== null && "toJSON" in value
    ? (value as { toJSON(): unknown }).toJSON()
    : value;
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value).replaceAll("|", "\\|")}\``;
}
