/** Prints the OpenAPI document; `make generate` keeps it in docs/openapi.json. */
import { openapiDocument } from "./document.ts";

console.log(JSON.stringify(openapiDocument(), null, 2));
