import { asCode } from "./copy.js";
import { readEvents } from "./events.js";
import { typeAndListen } from "./live.js";
import { createPlayer } from "./player.js";
import { brokenOff, client, fill, LocalizedError, messageOf, send, tenths, whole } from "./says.js";
import { chart } from "./waveform.js";

/**
 * The playground synthesizes a text, draws the waveform, and highlights each word during the playback.
 */
const form = document.getElementById("playground");
const $ = (id) => document.getElementById(id);
const csrf = form.elements.csrf.value;
const endpoint = form.action;
const historyKey = "svc-tts-history";
const historyLength = 20;

const limits = JSON.parse(form.dataset.limits);
const player = createPlayer();
const drawing = chart($("waveform"));
let current;

const isArcana = () => form.elements.modelId.value === "arcana";

/** Shows the voices and options of the selected model, the length of the text, and the request as code. */
function update() {
  const model = form.elements.modelId.value;
  const language = form.elements.lang.value;
  const { speaker } = form.elements;
  for (const option of speaker.options) {
    const fits =
      option.dataset.models.split(" ").includes(model) &&
      (language === "" || option.dataset.language === language);
    option.hidden = !fits;
    option.disabled = !fits;
  }
  if (speaker.selectedOptions[0]?.disabled !== false) {
    speaker.value = [...speaker.options].find((option) => !option.disabled)?.value ?? "";
  }
  for (const group of form.querySelectorAll("[data-of]")) {
    const fits = group.dataset.of === (isArcana() ? "arcana" : "mist");
    group.hidden = !fits;
    group.disabled = !fits;
  }
  const { length, limit } = measure(form.elements.text.value, model);
  $("length").textContent = fill(client.length, { length: whole(length), limit: whole(limit) });
  $("length").classList.toggle("wrong", length > limit);
  $("code").textContent = asCode($("code-kind").value, location.origin, body(), mediaType());
}

/** Returns the media type of the selected format. The page contains the media type of each format. */
function mediaType() {
  return form.elements.audioFormat.selectedOptions[0].dataset.mediaType;
}

/** Returns the number of characters by the rule of the server, and the limit of the model. */
function measure(text, model) {
  return { length: [...text].length, limit: limits[model] };
}

/** Returns the body of the request. Options with their default value are omitted. */
function body() {
  return Object.fromEntries(
    [...form.elements]
      .filter(isRequestField)
      .map((element) => [element.name, fieldValue(element)])
      .filter(([, value]) => value !== undefined),
  );
}

function isRequestField(element) {
  const isField = element.name !== "" && element.name !== undefined && element.name !== "csrf";
  return isField && element.dataset.local === undefined && !element.matches(":disabled");
}

function fieldValue(element) {
  if (element.type === "checkbox") return element.checked || undefined;
  if (element.value === "" || element.value === element.dataset.usual) return undefined;
  return element.type === "number" ? Number(element.value) : element.value;
}

async function requestSpeech(fields, accept, signal) {
  const { modelId: model, text = "" } = fields;
  const { length, limit } = measure(text, model);
  if (length > limit) {
    throw new LocalizedError(fill(client.tooLong, { model, length: whole(length), limit: whole(limit) }));
  }
  return send(endpoint, {
    method: "POST",
    headers: { "content-type": "application/json", accept, "x-csrf-token": csrf },
    body: JSON.stringify(fields),
    signal,
  });
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return problem.detail ?? fill(client.answered, { status: response.status });
}

function showStatus(message, isProblem = false) {
  $("status").textContent = isProblem ? "" : message;
  $("problem").textContent = isProblem ? message : "";
  $("problem").hidden = !isProblem;
}

/** Plays a sample sentence with the selected voice, without options. */
function sample() {
  const { modelId, speaker } = form.elements;
  const text = speaker.selectedOptions[0]?.dataset.sample;
  void speak({ modelId: modelId.value, speaker: speaker.value, text }, () => undefined);
}

/** Synthesizes and plays a request. @param onSuccess is called with the request after its synthesis. */
async function speak(request, onSuccess) {
  stop();
  const run = { cancel: new AbortController(), begun: performance.now() };
  current = run;
  const { audioFormat: _, ...fields } = request;
  $("stop").disabled = false;
  $("words").textContent = fields.text ?? "";
  showStatus(client.speaking);
  try {
    const response = await requestSpeech(
      { ...fields, audioFormat: "pcm" },
      "text/event-stream",
      run.cancel.signal,
    );
    if (!response.ok) throw new LocalizedError(await problemOf(response));
    drawing.clear();
    player.start(Number(response.headers.get("x-sampling-rate")));
    for await (const event of readEvents(response.body)) handleEvent(run, event);
    const figures = {
      ms: whole(run.firstMs),
      seconds: tenths(player.seconds()),
      whole: whole(performance.now() - run.begun),
    };
    showStatus(fill(client.spoken, figures));
    onSuccess(fields);
    player.whenOver(() => disableStop(run));
  } catch (error) {
    if (current === run) showStatus(messageOf(error), true);
    disableStop(run);
  }
}

function handleEvent(run, { name, data }) {
  if (name === "error") throw new LocalizedError(brokenOff(data.detail));
  if (name === "timestamps") showWords(data.word_timestamps);
  if (name !== "chunk") return;
  const samples = player.add(data.data);
  drawing.add(samples);
  if (run.firstMs !== undefined || samples.length === 0) return;
  run.firstMs = performance.now() - run.begun;
  showStatus(fill(client.firstAudio, { ms: whole(run.firstMs) }));
}

function disableStop(run) {
  if (current === run) $("stop").disabled = true;
}

function stop() {
  current?.cancel.abort();
  current = undefined;
  player.stop();
  $("stop").disabled = true;
}

function showWords({ words, start, end }) {
  const spans = words.map((word) => {
    const span = document.createElement("span");
    span.textContent = word;
    return span;
  });
  $("words").replaceChildren(...spans.flatMap((span) => [span, " "]));
  const highlight = (at) => {
    for (const [i, span] of spans.entries()) span.classList.toggle("lit", at >= start[i] && at < end[i]);
    drawing.mark(at / Math.max(player.seconds(), 0.001));
  };
  player.onTime(highlight);
}

async function download() {
  const fields = body();
  const format = fields.audioFormat ?? "wav";
  delete fields.audioFormat;
  if (format === "ogg" && fields.samplingRate === undefined) fields.samplingRate = 24000;
  showStatus(client.making);
  const response = await requestSpeech(fields, mediaType());
  if (!response.ok) return showStatus(await problemOf(response), true);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `speech.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
  const rate = whole(Number(response.headers.get("x-sampling-rate")));
  return showStatus(fill(client.made, { file: link.download, rate }));
}

/** Reads the recent requests, which only this browser stores. */
function readHistory() {
  try {
    return JSON.parse(localStorage.getItem(historyKey) ?? "[]");
  } catch {
    return []; // The stored value is not valid JSON.
  }
}

function remember(fields) {
  const others = readHistory().filter((one) => JSON.stringify(one) !== JSON.stringify(fields));
  localStorage.setItem(historyKey, JSON.stringify([fields, ...others].slice(0, historyLength)));
  showHistory();
}

function showHistory() {
  const items = readHistory().map((fields) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = `${fields.speaker}: ${fields.text.slice(0, 60)}`;
    button.addEventListener("click", () => restore(fields));
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  $("history").replaceChildren(...items);
  $("forget").hidden = items.length === 0;
}

function restore(fields) {
  form.reset();
  for (const [name, value] of Object.entries(fields)) {
    const element = form.elements[name];
    if (element?.type === "checkbox") element.checked = value === true;
    else if (element) element.value = String(value);
  }
  update();
  form.elements.text.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void speak(body(), remember);
});
form.addEventListener("input", update);
$("stop").addEventListener("click", stop);
$("sample").addEventListener("click", sample);
$("download").addEventListener("click", () => {
  download().catch((error) => showStatus(messageOf(error), true));
});
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText($("code").textContent);
  showStatus(client.copied);
});
$("forget").addEventListener("click", () => {
  localStorage.removeItem(historyKey);
  showHistory();
});
const { disconnect } = typeAndListen(body);
form.addEventListener("change", disconnect);
$("copy").hidden = !navigator.clipboard; // Browsers have no clipboard API on pages without TLS.
update();
showHistory();
