/** Sends requests with keys that nobody made, at a steady pace: URL, how many a second, for how many seconds. Prints how many were refused. */
import { Agent } from "undici";
import { createKey } from "../../../server/store/keys/key.ts";
import { openLoop } from "../common/open-loop.ts";

const [url = "", perSecond = "", seconds = ""] = process.argv.slice(2);
/** Well-formed, so that each is hashed and looked up. */
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
