import { readEvents } from "./events.js";
import { createPlayer } from "./player.js";
import { brokenOff, client, fill, LocalizedError, messageOf, send, tenths } from "./says.js";

/** The player for pronunciations that are not saved yet. */
const player = createPlayer();

async function listen(form) {
  const status = form.querySelector("[role=status]");
  const sounds = form.elements.phonemes.value.replace(/^\{|\}$/g, "");
  status.textContent = "";
  const response = await send(form.dataset.speech, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      "x-csrf-token": form.elements.csrf.value,
    },
    body: JSON.stringify({
      modelId: "mist",
      speaker: form.dataset.preview,
      text: `{${sounds}}`,
      phonemizeBetweenBrackets: true,
      audioFormat: "pcm",
    }),
  });
  if (!response.ok) {
    const problem = await response.json();
    status.textContent = problem.detail;
    return;
  }
  player.start(Number(response.headers.get("x-sampling-rate")));
  for await (const { name, data } of readEvents(response.body)) {
    if (name === "chunk") player.add(data.data);
    if (name === "error") throw new LocalizedError(brokenOff(data.detail));
  }
  status.textContent = fill(client.seconds, { seconds: tenths(player.seconds()) });
}

for (const form of document.querySelectorAll("form[data-preview]")) {
  const button = form.querySelector("[data-listen]");
  if (!form.dataset.preview) continue;
  button.hidden = false;
  button.addEventListener("click", () => {
    listen(form).catch((error) => {
      form.querySelector("[role=status]").textContent = messageOf(error);
    });
  });
}
