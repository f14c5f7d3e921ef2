import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

type Schema = Readonly<Record<string, unknown>>;

const scalars: Readonly<Partial<Record<ScalarType, Schema>>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.INT32]: { type: "integer" },
  [ScalarType.UINT32]: { type: "integer", minimum: 0 },
  [ScalarType.FLOAT]: { type: "number" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
};

/** The messages that have a special form in the JSON mapping of proto3. */
const wellKnown: Readonly<Record<string, Schema>> = {
  "google.protobuf.Duration": { type: "string", pattern: "^\\d+(\\.\\d+)?s$" },
};

export interface ProtobufSchemaOptions {
  /** The descriptions by `Message` or `Message.field`, with the field names of JSON. */
  readonly descriptions: Readonly<Record<string, string>>;
  /** Whether the receiver ignores unknown fields. */
  readonly ignoresUnknown: boolean;
}

/** Creates JSON Schemas for protobuf messages in the JSON mapping of proto3. */
export class ProtobufSchemas {
  readonly #options: ProtobufSchemaOptions;
  /** The schemas of all nested messages, by name. */
  readonly components: Record<string, Schema> = {};

  constructor(options: ProtobufSchemaOptions) {
    this.#options = options;
  }

  /**
   * Returns one schema for each payload of an envelope. A message contains exactly one field of the oneof
   * `payload`.
   */
  payloadsOf(envelope: DescMessage): ReadonlyMap<string, Schema> {
    const isPayload = ({ oneof }: DescField) => oneof?.name === "payload";
    const common = envelope.fields.filter((field) => !isPayload(field));
    return new Map(
      envelope.fields
        .filter(isPayload)
        .map((field) => [field.jsonName, this.#object(envelope, [...common, field], [field.jsonName])]),
    );
  }

  #object(message: DescMessage, fields: readonly DescField[], required: readonly string[] = []): Schema {
    const properties = fields.map((field) => [field.jsonName, this.#described(message, field)]);
    return {
      type: "object",
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      ...(!this.#options.ignoresUnknown && { additionalProperties: false }),
    };
  }

  #described(message: DescMessage, field: DescField): Schema {
    const description = this.#options.descriptions[`${message.name}.${field.jsonName}`];
    return { ...this.#field(field), ...(description !== undefined && { description }) };
  }

  #field(field: DescField): Schema {
    switch (field.fieldKind) {
      case "scalar":
        return scalarSchema(field.scalar);
      case "enum":
        return { type: "string", enum: field.enum.values.map(({ name }) => name) };
      case "message":
        return this.#message(field.message);
      case "list":
        return { type: "array", items: this.#items(field) };
      case "map":
        throw new Error(`the field ${field.name} is a map; maps are not supported`);
    }
  }

  #items(field: DescField & { readonly fieldKind: "list" }): Schema {
    if (field.listKind === "message") return this.#message(field.message);
    if (field.listKind === "scalar") return scalarSchema(field.scalar);
    return { type: "string", enum: field.enum.values.map(({ name }) => name) };
  }

  #message(message: DescMessage): Schema {
    const known = wellKnown[message.typeName];
    if (known) return known;
    const { name, fields } = message;
    const description = this.#options.descriptions[name];
    this.components[name] ??= {
      ...(description !== undefined && { description }),
      ...this.#object(message, fields),
    };
    return { $ref: `#/components/schemas/${name}` };
  }
}

function scalarSchema(type: ScalarType): Schema {
  const schema = scalars[type];
  if (!schema) throw new Error(`the scalar type ${ScalarType[type]} is not supported`);
  return schema;
}
