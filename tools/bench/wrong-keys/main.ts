/**
 * Sends requests with unknown keys at a constant rate, and prints the number of rejected requests. The
 * arguments are the URL, the requests per second, and the seconds.
 */
import { Agent } from "undici";
import { createKey } from "../../../server/store/keys/key.ts";
import { openLoop } from "../common/open-loop.ts";

const [url = "", perSecond = "", seconds = ""] = process.argv.slice(2);
/** Unknown keys with a valid format, so that the server looks up the digest of each key. */
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
