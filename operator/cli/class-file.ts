import { readFile } from "node:fs/promises";
import { Compile } from "typebox/compile";
import { Value } from "typebox/value";
import { type TtsClassSpec, TtsClassSpecSchema } from "../../crds/tts-class.ts";
import { sortFields } from "../../crds/unknown-fields.ts";
import { UsageError } from "../../lib/usage-error.ts";

const schema = Compile(TtsClassSpecSchema);

/**
 * Reads the defaults and limits of a namespaced installation. Throws `UsageError` if the file is not the spec of a
 * TtsClass: a misspelled limit would otherwise allow every value.
 */
export async function readClassFile(file: string): Promise<TtsClassSpec> {
  const found = await parse(file);
  const { unknown } = sortFields(TtsClassSpecSchema, found);
  if (unknown.length > 0)
    throw new UsageError(
      `${file} contains ${unknown[0]}, which is not a field of a TtsClass; remove or correct the field`,
    );
  const spec = Value.Default(TtsClassSpecSchema, found);
  if (schema.Check(spec)) return spec;
  const [first] = schema.Errors(spec);
  throw new UsageError(
    `${file} is not the spec of a TtsClass: ${first?.instancePath || "/"} ${first?.message}; correct this field`,
  );
}

async function parse(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw new UsageError(
      `cannot read defaults and limits from ${file}: it must be the spec of a TtsClass in JSON`,
      {
        cause,
      },
    );
  }
}
