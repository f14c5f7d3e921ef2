/**
 * Sends requests with unknown keys at a constant rate. Arguments: URL, requests per second, seconds. Prints
 * the number of rejected requests.
 */
import { Agent } from "undici";
import { createKey } from "../../../server/store/keys/key.ts";
import { openLoop } from "../common/open-loop.ts";

const [url = "", perSecond = "", seconds = ""] = process.argv.slice(2);
/** A key with a valid format, so that each one is hashed and looked up. */
const keys = Array.from({ length: 1_000 }, createKey);
const agent = new Agent({ connections: 16, pipelining: 1 });
let next = 0;

const statuses = await openLoop(Number(perSecond), Number(seconds), async () => {
  next = (next + 1) % keys.length;
  const { statusCode, body } = await agent.request({
    origin: url,
    path: "/v1/svc-tts",
    method: "POST",
    headers: { authorization: `Bearer ${keys[next]}`, "content-type": "application/json" },
    body: "{}",
  });
  await body.dump();
  return statusCode;
});
await agent.close();
console.log(statuses.filter((status) => status === 401).length);
