/** Prints the OpenAPI document. `make generate` writes it to docs/openapi.json. */
import { defaultLimits } from "../request/limits.ts";
import { openapiDocument } from "./document.ts";

console.log(JSON.stringify(openapiDocument(defaultLimits.highestRate), null, 2));
