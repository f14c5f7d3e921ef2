/** Prints the AsyncAPI document. `make generate` writes it to docs/asyncapi.json. */
import { asyncapiDocument } from "./document.ts";

console.log(JSON.stringify(asyncapiDocument(), null, 2));
