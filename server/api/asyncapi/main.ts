/** Prints the AsyncAPI document; `make generate` keeps it in docs/asyncapi.json. */
import { asyncapiDocument } from "./document.ts";

console.log(JSON.stringify(asyncapiDocument(), null, 2));
