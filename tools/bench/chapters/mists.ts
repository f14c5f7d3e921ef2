import { Agent } from "undici";
import { recognize, type Spoken } from "../../../test/support/audio/recognizer.ts";
import { englishSentences } from "../../../test/support/audio/texts.ts";
import { median } from "../common/load.ts";
import type { Measurement } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import type { RunningServer } from "../common/running-server.ts";
import { firstAudioMs, usualTarget } from "./first-audio.ts";

const rounds = 15;
const models = ["mist", "mistv2"] as const;
type Mist = (typeof models)[number];

/** A text whose first sentence has no comma, as is common in voice agents. */
const longText =
  "The old man told us a very long story about the sea and everything that lives in it while it was raining. We listened until the end.";

/** Compares the time to first audio and the intelligibility of mist and mistv2, with the same voice. */
export const mists: Measurement = {
  name: "mist and mistv2",
  async measure(workbench) {
    const server = await workbench.server();
    const agent = new Agent({ pipelining: 1 });
    const times: Record<Mist, number[]> = { mist: [], mistv2: [] };
    for (let round = 0; round < rounds; round++) {
      for (const model of models)
        times[model].push(await firstAudioMs(agent, targetOf(server, model), longText));
    }
    await agent.close();
    const errors = { mist: await errorRate(server, "mist"), mistv2: await errorRate(server, "mistv2") };
    const ratio = median(times.mistv2) / median(times.mist);
    return {
      targets: [
        {
          what: "first audio of mistv2 relative to mist",
          target: "less than 1",
          measured: ratio.toFixed(2),
          met: ratio < 1,
        },
        {
          what: "word error rates of mistv2 and mist, by a speech recognizer",
          target: "mistv2 at most that of mist",
          measured: `${percent(errors.mistv2)} and ${percent(errors.mist)}`,
          met: errors.mistv2 <= errors.mist,
        },
      ],
      text: `Both models used the voice \`alan\` and raw PCM. First audio is the median of ${rounds} rounds, of a text without a comma in its first sentence. The word error rate is that of ${englishSentences.length} sentences.

${markdownTable(
  ["model", "first audio", "word error rate"],
  models.map((model) => [model, `${median(times[model]).toFixed(1)} ms`, percent(errors[model])]),
)}`,
    };
  },
};

function targetOf({ url, key }: RunningServer, model: Mist) {
  return { ...usualTarget, url, key, model, accept: "audio/pcm", rate: 16_000, eventFormat: "pcm" } as const;
}

async function errorRate({ url, key }: RunningServer, modelId: Mist): Promise<number> {
  const spoken: Spoken[] = [];
  for (const sentence of englishSentences) {
    const response = await fetch(`${url}/v1/svc-tts`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", accept: "audio/pcm" },
      body: JSON.stringify({ speaker: usualTarget.voice, modelId, text: sentence }),
    });
    if (!response.ok) throw new Error(`a request for ${modelId} received status ${response.status}`);
    spoken.push({ samples: new Int16Array(await response.arrayBuffer()), rate: 16_000, sentence });
  }
  return (await recognize(spoken)).wordErrorRate;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
