import type { FastifyInstance } from "fastify";
import { type ModelId, modelIds, models } from "../../../config/contract/models.ts";
import { type ListedVoice, languages } from "../../../config/contract/voices.ts";
import { quickest, slowest } from "../../api/fields.ts";
import { refuseWhileDraining } from "../../api/lifecycle.ts";
import type { ApiParts } from "../../api/parts.ts";
import { limitRate } from "../../api/quota/hook.ts";
import { samplingDefaults } from "../../api/request.ts";
import { speak } from "../../api/routes/speech.ts";
import { audioFormats } from "../../api/variants.ts";
import type { Person } from "../../store/accounts.ts";
import type { ApiKey } from "../../store/key.ts";
import { type Html, html } from "../html.ts";
import { base, csrfField, layout, type Visitor } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { samples } from "../samples.ts";
import { requireCsrf, requireVisit, visitOf } from "../visit.ts";

const place = `${base}/playground`;

/** A page to speak on, and the route that speaks for it: the interface's own, by the session in place of a key. */
export function addPlayground(scope: FastifyInstance, parts: DashboardParts, api: ApiParts): void {
  const guard = requireVisit(parts, "owner", "member");
  scope.get("/playground", { onRequest: guard }, async (request, reply) => {
    const visitor = visitOf(request);
    const content = page(visitor, api.voices.all(), api.prober.configured());
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "Playground", visitor, place, content, script: "playground.js" }));
  });
  scope.post("/playground/speech", {
    onRequest: [
      refuseWhileDraining(api.lifecycle),
      guard,
      async (request) => {
        request.apiKey = keyOf(visitOf(request).person);
      },
      limitRate(api.quotas),
    ],
    preHandler: requireCsrf,
    handler: (request, reply) => speak(api, request, reply, "dashboard"),
  });
}

/** What limits, turns, logs and words go by in place of a key. */
function keyOf({ id, name, team }: Person): ApiKey {
  return {
    id: `person:${id}`,
    name: `${name} at the dashboard`,
    scopes: [],
    ...(team !== undefined && { team }),
  };
}

function page({ csrf }: Visitor, voices: readonly ListedVoice[], configured: readonly ModelId[]): Html {
  const limits = Object.fromEntries(modelIds.map((id) => [id, models[id].maxDashboardTextLength]));
  const spoken = [...new Set(voices.map(({ language }) => language))];
  return html`<form id="playground" method="post" action="${place}/speech" data-limits="${JSON.stringify(limits)}">
${csrfField(csrf)}
<div class="grid">
<div><label for="modelId">Model</label><select id="modelId" name="modelId">${configured.map((id) => html`<option>${id}</option>`)}</select></div>
<div><label for="lang">Language</label><select id="lang" name="lang" data-local><option value="">every</option>${spoken.map((language) => html`<option value="${language}">${languageName(language)}</option>`)}</select></div>
<div><label for="speaker">Voice</label><select id="speaker" name="speaker">${voices.map(voiceOption)}</select>
<p class="row"><button type="button" class="plain" id="sample">Play a sample</button></p></div>
</div>
<label for="text">Text</label>
<textarea id="text" name="text" required aria-describedby="length" dir="auto">The quick brown fox jumps over the lazy dog.</textarea>
<p class="help" id="length"></p>
<p class="row"><button>Speak</button><button type="button" class="plain" id="stop" disabled>Stop</button>
<span id="status" role="status" class="quiet"></span></p>
<p class="alert" role="alert" id="problem" hidden></p>
<canvas id="waveform" width="960" height="96" role="img" aria-label="How loud the speech is"></canvas>
<p id="words" dir="auto" class="words" aria-label="Words, lit as they are spoken"></p>
<details><summary>Options</summary><div class="grid">
${number("speedAlpha", "Speed (speedAlpha)", `min="${quickest}" max="${slowest}" step="0.05"`, 1, "mist: below 1 is faster; arcana: above 1 is.")}
${number("samplingRate", "Sampling rate, Hz", `min="1" step="1"`, undefined, "The model's own, where it is empty.")}
</div>
<fieldset data-of="mist"><legend>mist and mistv2</legend>
${check("noTextNormalization", "speak numbers as they are written")}
${check("pauseBetweenBrackets", "<N> is a pause of N milliseconds")}
${check("phonemizeBetweenBrackets", "{phonemes} in curly brackets")}
${check("saveOovs", "keep unknown words for review, when it is downloaded")}
<label for="inlineSpeedAlpha">Speeds of [words] in square brackets</label><input id="inlineSpeedAlpha" name="inlineSpeedAlpha" placeholder="0.5, 1.2">
</fieldset>
<fieldset data-of="arcana"><legend>arcana</legend><div class="grid">
${number("repetition_penalty", "repetition_penalty", `min="0.01" step="0.01"`, samplingDefaults.repetitionPenalty)}
${number("temperature", "temperature", `min="0" step="0.01"`, samplingDefaults.temperature)}
${number("top_p", "top_p", `min="0.01" max="1" step="0.01"`, samplingDefaults.topP)}
${number("max_tokens", "max_tokens", `min="200" max="5000" step="1"`, samplingDefaults.maxTokens)}
</div></fieldset></details>
<h2>Take it along</h2>
<div class="row"><label for="audioFormat">Format</label><select id="audioFormat" name="audioFormat" data-usual="wav">${audioFormats.map((format) => html`<option>${format}</option>`)}</select>
<button type="button" class="plain" id="download">Download</button></div>
<div class="row"><label for="code-kind">As code</label><select id="code-kind" data-local><option value="curl">curl</option><option value="python">Python</option><option value="javascript">JavaScript</option></select>
<button type="button" class="plain" id="copy">Copy</button></div>
<pre id="code" tabindex="0" aria-label="The request as code"></pre>
</form>
<h2>Spoken before, in this browser</h2>
<ul id="history" class="plain-list"></ul>
<p><button type="button" class="plain" id="forget" hidden>Forget all</button></p>
<noscript><p class="alert">This page needs scripts, which your browser does not run.</p></noscript>`;
}

function languageName(language: string): string {
  return languages[language]?.name ?? language;
}

function voiceOption({ id, models: speakable, language, gender }: ListedVoice): Html {
  return html`<option value="${id}" data-models="${speakable.join(" ")}" data-language="${language}" data-sample="${samples[language]}">${id} (${gender}, ${languageName(language)})</option>`;
}

/** @param bounds attributes that are the specification's own bounds. */
function number(name: string, label: string, bounds: string, usual: number | undefined, help?: string): Html {
  const attributes = [...bounds.matchAll(/(\w+)="([\d.]+)"/g)].map(
    ([, key, value]) => html` ${key}="${value}"`,
  );
  return html`<div><label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="number"${attributes}${usual !== undefined && html` value="${usual}" data-usual="${usual}"`}${help !== undefined && html` aria-describedby="${name}-help"`}>
${help !== undefined && html`<p class="help" id="${name}-help">${help}</p>`}</div>`;
}

function check(name: string, label: string): Html {
  return html`<label class="choice"><input type="checkbox" name="${name}"> ${label}</label>`;
}
