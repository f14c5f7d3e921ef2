import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import { type ModelId, modelIds, models } from "../../../config/contract/models.ts";
import type { Quotas } from "../../api/access/quotas.ts";
import { limitRate } from "../../api/access/rate-limit.ts";
import { type Lifecycle, refuseWhileDraining } from "../../api/lifecycle/drain.ts";
import { addJsonParser, type BodyOptions } from "../../api/request/body.ts";
import { quickest, slowest } from "../../api/request/fields.ts";
import { audioFormats, streamTypes } from "../../api/request/variants.ts";
import { answerSpeechRequest } from "../../api/routes/speech.ts";
import type { SpeechServices } from "../../api/synthesis/http-exchange.ts";
import type { Prober } from "../../api/upstream/prober.ts";
import type { DirectoryVoice, VoiceDirectory } from "../../api/upstream/voice-directory.ts";
import { Failure } from "../../contract/errors.ts";
import { samplingDefaults } from "../../contract/speech.ts";
import { type Html, html } from "../html/html.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, csrfField, type SignedInUser, sendPage } from "./layout.ts";
import { apiKeyFor, playgroundRoles, socketPath } from "./playground-socket.ts";
import { requireCsrf, requireSession, sessionOf } from "./session.ts";

const place = `${base}/playground`;

export interface PlaygroundServices {
  readonly speech: SpeechServices;
  readonly body: BodyOptions;
  readonly lifecycle: Lifecycle;
  readonly quotas: Pick<Quotas, "count">;
  readonly prober: Pick<Prober, "configured">;
  readonly voices: Pick<VoiceDirectory, "all">;
}

/**
 * Adds the page of the playground and its synthesis route. The route works like the route of the API, but
 * requires a session instead of an API key.
 */
export function addPlayground(
  scope: FastifyInstance,
  parts: DashboardContext,
  { speech, body, lifecycle, quotas, prober, voices }: PlaygroundServices,
): void {
  const guard = requireSession(parts, ...playgroundRoles);
  scope.get("/playground", { onRequest: guard }, async (request, reply) => {
    const visitor = sessionOf(request);
    const locale = localeOf(request);
    const content = page(visitor, locale, voices.all(), prober.configured());
    const { words } = locale;
    return sendPage(reply, { title: words.playground.title, place, content, script: "playground.js" });
  });
  const speechRoute: FastifyPluginAsync = async (inner) => {
    addJsonParser(inner, body);
    inner.post("/playground/speech", {
      onRequest: [
        refuseWhileDraining(lifecycle),
        guard,
        async (request) => {
          request.apiKey = apiKeyFor(sessionOf(request).person);
        },
        limitRate(quotas),
      ],
      preHandler: requireCsrf,
      handler: (request, reply) => answerSpeechRequest(speech, request, reply, "dashboard").catch(sayFields),
    });
  };
  void scope.register(speechRoute);
}

/** Converts a failure with invalid fields to a message in the language of the page. */
function sayFields(error: unknown): never {
  if (!(error instanceof Failure) || error.fields.length === 0) throw error;
  const { code, fields } = error;
  throw new Refusal(code, ({ playground }) => playground.refused(error), { fields, cause: error });
}

function page(
  { csrf }: SignedInUser,
  locale: Locale,
  voices: readonly DirectoryVoice[],
  configured: readonly ModelId[],
): Html {
  const { playground } = locale.words;
  const limits = Object.fromEntries(modelIds.map((id) => [id, models[id].maxDashboardTextLength]));
  const spoken = [...new Set(voices.map(({ language }) => language))];
  return html`<form id="playground" method="post" action="${place}/speech" data-limits="${JSON.stringify(limits)}">
${csrfField(csrf)}
<div class="grid">
<div><label for="modelId">${playground.model}</label><select id="modelId" name="modelId">${configured.map((id) => html`<option>${id}</option>`)}</select></div>
<div><label for="lang">${playground.language}</label><select id="lang" name="lang" data-local><option value="">${playground.everyLanguage}</option>${spoken.map((language) => html`<option value="${language}">${locale.languageName(language)}</option>`)}</select></div>
<div><label for="speaker">${playground.voice}</label><select id="speaker" name="speaker">${voices.map((voice) => voiceOption(voice, locale))}</select>
<p class="row"><button type="button" class="plain" id="sample">${playground.sample}</button></p></div>
</div>
<label for="text">${playground.text}</label>
<textarea id="text" name="text" required aria-describedby="length" dir="auto">The quick brown fox jumps over the lazy dog.</textarea>
<p class="help" id="length"></p>
<p class="row"><button>${playground.speak}</button><button type="button" class="plain" id="stop" disabled>${playground.stop}</button>
<span id="status" role="status" class="quiet"></span></p>
<p class="alert" role="alert" id="problem" hidden></p>
<canvas id="waveform" width="960" height="96" role="img" aria-label="${playground.waveform}"></canvas>
<p id="words" role="group" dir="auto" class="words" aria-label="${playground.litWords}"></p>
<details><summary>${playground.options}</summary><div class="grid">
${number("speedAlpha", playground.speed, `min="${quickest}" max="${slowest}" step="0.05"`, 1, playground.speedHelp)}
${number("samplingRate", playground.rate, `min="1" step="1"`, undefined, playground.rateHelp)}
</div>
<fieldset data-of="mist"><legend>${playground.mist}</legend>
${check("noTextNormalization", playground.plainNumbers)}
${check("pauseBetweenBrackets", playground.pauses)}
${check("phonemizeBetweenBrackets", playground.phonemes)}
${check("saveOovs", playground.keepWords)}
<label for="inlineSpeedAlpha">${playground.inlineSpeeds}</label><input id="inlineSpeedAlpha" name="inlineSpeedAlpha" placeholder="0.5, 1.2">
</fieldset>
<fieldset data-of="arcana"><legend>arcana</legend><div class="grid">
${number("repetition_penalty", "repetition_penalty", `min="0.01" step="0.01"`, samplingDefaults.repetitionPenalty)}
${number("temperature", "temperature", `min="0" step="0.01"`, samplingDefaults.temperature)}
${number("top_p", "top_p", `min="0.01" max="1" step="0.01"`, samplingDefaults.topP)}
${number("max_tokens", "max_tokens", `min="200" max="5000" step="1"`, samplingDefaults.maxTokens)}
</div></fieldset></details>
<h2>${playground.takeAlong}</h2>
<div class="row"><label for="audioFormat">${playground.format}</label><select id="audioFormat" name="audioFormat" data-usual="wav">${audioFormats.map((format) => html`<option data-media-type="${streamTypes[format][0]}">${format}</option>`)}</select>
<button type="button" class="plain" id="download">${playground.download}</button></div>
<div class="row"><label for="code-kind">${playground.asCode}</label><select id="code-kind" data-local><option value="curl">curl</option><option value="python">Python</option><option value="javascript">JavaScript</option></select>
<button type="button" class="plain" id="copy">${playground.copy}</button></div>
<pre id="code" tabindex="0" aria-label="${playground.code}"></pre>
</form>
${typeAndListen(locale)}
<h2>${playground.before}</h2>
<ul id="history" class="plain-list"></ul>
<p><button type="button" class="plain" id="forget" hidden>${playground.forget}</button></p>
<noscript><p class="alert">${playground.needsScripts}</p></noscript>`;
}

/** Creates the part of the page that synthesizes text over a WebSocket while the user types. */
function typeAndListen({ words: { playground } }: Locale): Html {
  return html`<h2>${playground.live}</h2>
<label for="live">${playground.liveText}</label>
<textarea id="live" aria-describedby="live-help" dir="auto" data-socket="${socketPath}"></textarea>
<p class="help" id="live-help">${playground.liveHelp}</p>
<p class="row"><button type="button" class="plain" id="interrupt" disabled>${playground.interrupt}</button>
<span id="live-status" role="status" class="quiet"></span></p>
<p class="alert" role="alert" id="live-problem" hidden></p>
<p id="live-words" role="group" dir="auto" class="words" aria-label="${playground.liveWords}"></p>`;
}

function voiceOption(
  { id, models: speakable, language, gender, engines }: DirectoryVoice,
  { words, languageName }: Locale,
): Html {
  const { playground } = words;
  const engine = [...new Set(Object.values(engines))].map(engineName).join(", ");
  return html`<option value="${id}" data-models="${speakable.join(" ")}" data-language="${language}" data-sample="${samples[language]}">${playground.voiceOf(id, gender, languageName(language), engine)}</option>`;
}

const engineNames: Readonly<Record<string, string>> = {
  kokoro: "Kokoro",
  flite: "Flite",
  espeak: "eSpeak NG",
  piper: "Piper",
};

function engineName(engine: string): string {
  return engineNames[engine] ?? engine;
}

/** Creates an input for a number. @param bounds the attributes with the limits of the specification. */
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

/** The sample sentence "Hello, I am glad to read this to you." in each language, by ISO 639-3 code. */
export const samples: Readonly<Record<string, string>> = {
  eng: "Hello, I am glad to read this to you.",
  spa: "Hola, me alegra leerle esto.",
  fra: "Bonjour, je suis ravi de vous lire ceci.",
  deu: "Guten Tag, ich lese Ihnen das gerne vor.",
  ita: "Buongiorno, sono lieto di leggerle questo.",
  por: "Olá, tenho prazer em ler isto para você.",
  nld: "Hallo, ik lees u dit graag voor.",
  pol: "Dzień dobry, z przyjemnością to przeczytam.",
  rus: "Здравствуйте, я с радостью это прочитаю.",
  hin: "नमस्ते, मुझे यह पढ़कर सुनाने में खुशी है।",
  ara: "مرحبا، يسعدني أن أقرأ لك هذا.",
  tur: "Merhaba, bunu size memnuniyetle okurum.",
  swe: "Hej, jag läser gärna det här för dig.",
  ell: "Γεια σας, χαίρομαι που σας το διαβάζω.",
};
