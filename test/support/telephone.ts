import type { TestApi } from "./api-tier.ts";
import type { Recording } from "./timbre.ts";

/** What a caller of a telephone hears: G.711 mu-law at 8000 Hz, decoded. @param body of the request. */
export async function overTelephone(api: TestApi, body: object): Promise<Recording> {
  const answer = await api.post({ modelId: "mist", ...body }, { accept: "audio/basic" });
  if (!answer.ok) throw new Error(`status ${answer.status}: ${await answer.text()}`);
  return { samples: fromMulaw(Buffer.from(await answer.arrayBuffer())), rate: 8000 };
}

/** G.711, table 2a: sign, three bits of segment, four of step, all turned around. */
function fromMulaw(bytes: Uint8Array): Int16Array {
  return Int16Array.from(bytes, (byte) => {
    const turned = ~byte & 0xff;
    const magnitude = ((((turned & 0x0f) << 3) + 0x84) << ((turned >> 4) & 0x07)) - 0x84;
    return turned & 0x80 ? -magnitude : magnitude;
  });
}
