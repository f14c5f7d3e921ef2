import { createPlayer } from "./player.js";
import { brokenOff, client, fill, whole } from "./says.js";

/** If the user pauses for this time, an incomplete sentence is synthesized. */
const pauseMs = 1500;
const usualRate = 24000;
const sentenceEnd = /[.!?…]["'”’»)\]]*\s|[。！？｡]/gu;

/**
 * Implements "Type and listen". The module sends text over a WebSocket while the user types, plays the audio
 * without gaps, and highlights each word during its playback.
 * @param settings returns the options of the form, with the names of the request fields.
 */
export function typeAndListen(settings) {
  const $ = (id) => document.getElementById(id);
  const input = $("live");
  const player = createPlayer();
  let connection;
  /** The number of the current context, and the number of the first context after the last interruption. */
  let turn = 0;
  let firstTurn = 0;
  let typed = "";
  /** The number of characters of `typed` that were sent. */
  let sent = 0;
  let askedAt;
  let timer;
  let transcript = createTranscript($("live-words"));
  let isPlaying = false;
  /** The transcript of an interrupted synthesis, whose words may still arrive. */
  let cut;

  const say = (message, isProblem = false) => {
    $("live-status").textContent = isProblem ? "" : message;
    $("live-problem").textContent = isProblem ? message : "";
    $("live-problem").hidden = !isProblem;
  };

  const lost = (problem) => {
    connection = undefined;
    if (problem) say(problem, true);
  };

  const send = (message) => {
    connection ??= connect(input.dataset.socket, settings(), { hear, lost });
    connection.send(message);
  };

  /**
   * Sends the text up to a position.
   * @param isTurn whether the turn ends, so that the server also synthesizes an incomplete sentence.
   */
  const speak = (upTo, isTurn) => {
    const text = typed.slice(sent, upTo);
    sent = upTo;
    if (text.trim() === "") return;
    if (player.left() === 0) askedAt = performance.now();
    say("");
    send({ text, contextId: String(turn) });
    if (!isTurn) return;
    send({ operation: "flush", contextId: String(turn) });
    turn += 1;
  };

  const type = () => {
    sent = sentAfter(typed, sent, input.value, input.selectionStart);
    typed = input.value;
    const pending = typed.slice(sent);
    const line = pending.lastIndexOf("\n") + 1;
    if (line > 0) speak(sent + line, true);
    else speak(sent + lastEnd(pending), false);
    clearTimeout(timer);
    if (sent < typed.length) timer = setTimeout(() => speak(typed.length, true), pauseMs);
  };

  const hear = (event, rate) => {
    if (event.type === "error") return say(brokenOff(event.message), true);
    if (Number(event.contextId) < firstTurn) return hearLate(event);
    if (event.type === "chunk") play(event.data, rate);
    if (event.type === "timestamps") transcript.add(event.word_timestamps, player.seconds());
    return undefined;
  };

  /**
   * Handles the words of an interrupted synthesis, which arrive late. The transcript keeps only words that
   * were played.
   */
  const hearLate = ({ type, word_timestamps }) => {
    if (type !== "timestamps" || !cut) return;
    cut.add(word_timestamps, Number.POSITIVE_INFINITY);
    cut.cutAt(cut.heard());
    cut = undefined;
  };

  /**
   * Disables the button when no audio is left. The timer can fire too early, because the timer and the audio
   * have different clocks, and because more audio may have arrived.
   */
  const rest = () => {
    if (player.left() > 0) player.whenOver(rest);
    else $("interrupt").disabled = true;
  };

  const play = (data, rate) => {
    if (!isPlaying) {
      transcript.cutAt(Number.POSITIVE_INFINITY);
      transcript = createTranscript($("live-words"));
      player.start(rate);
      player.onTime((at) => transcript.light(at));
      isPlaying = true;
    }
    const samples = player.add(data);
    $("interrupt").disabled = false;
    player.whenOver(rest);
    if (askedAt === undefined || samples.length === 0) return;
    say(fill(client.liveFirstAudio, { ms: whole(performance.now() - askedAt) }));
    askedAt = undefined;
  };

  const interrupt = () => {
    clearTimeout(timer);
    sent = typed.length;
    turn += 1;
    firstTurn = turn;
    askedAt = undefined;
    connection?.clear();
    player.stop();
    isPlaying = false;
    transcript.cutAt(transcript.heard());
    cut = transcript;
    transcript = createTranscript($("live-words"));
    $("interrupt").disabled = true;
    say(client.interrupted);
  };

  input.addEventListener("input", type);
  $("interrupt").addEventListener("click", interrupt);
  return {
    /** Closes the socket, because its settings cannot change. The next text opens a new socket. */
    disconnect() {
      connection?.close();
      connection = undefined;
      isPlaying = false; // The next audio may have another sampling rate.
    },
  };
}

/**
 * Opens a WebSocket. Messages are queued until the socket is open.
 * @param settings the options of a request.
 * @param on `hear` is called with each event and the sampling rate. `lost` is called when the connection
 * ends, with a message if the end is an error.
 */
function connect(path, { text: _, audioFormat: __, ...settings }, on) {
  const rate = settings.samplingRate ?? usualRate;
  const query = new URLSearchParams({ ...settings, samplingRate: rate, audioFormat: "pcm" });
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${path}?${query}`);
  let waiting = [];
  let wasOpen = false;
  let isClosed = false;
  socket.addEventListener("open", () => {
    wasOpen = true;
    for (const text of waiting.splice(0)) socket.send(text);
  });
  socket.addEventListener("message", ({ data }) => {
    if (!isClosed) on.hear(JSON.parse(data), rate);
  });
  socket.addEventListener("close", ({ code }) => {
    if (isClosed) return;
    if (!wasOpen) on.lost(client.unreachable);
    else on.lost(code === 1000 || code === 1001 ? undefined : client.liveClosed);
  });
  return {
    send(message) {
      const text = JSON.stringify(message);
      if (wasOpen) socket.send(text);
      else waiting.push(text);
    },
    /** Stops the synthesis, and drops the queued messages. */
    clear() {
      waiting = [];
      if (wasOpen) socket.send(JSON.stringify({ operation: "clear" }));
    },
    close() {
      isClosed = true;
      socket.close(1000);
    },
  };
}

/**
 * Creates the transcript of one continuous piece of audio.
 * @param element the element to which the words are added.
 */
function createTranscript(element) {
  let words = [];
  /** The start of the current synthesis and the last played position, in seconds of the audio. */
  let begin = 0;
  let heard = 0;
  return {
    /**
     * Adds the words of a synthesis. @param seconds the seconds of audio that have arrived, which is the
     * position of the synthesis's end.
     */
    add({ words: texts, start, end }, seconds) {
      for (const [i, text] of texts.entries()) {
        const span = document.createElement("span");
        span.textContent = text;
        element.append(span, " ");
        words.push({ span, start: begin + start[i], end: begin + end[i] });
      }
      begin = seconds;
    },
    light(at) {
      heard = at;
      for (const { span, start, end } of words) span.classList.toggle("lit", at >= start && at < end);
      words = words.filter(({ span, end }) => end > at || span.classList.contains("lit"));
    },
    heard: () => heard,
    /** Removes the words that start at a position or later. */
    cutAt(at) {
      for (const { span, start } of words) {
        span.classList.remove("lit");
        if (start < at) continue;
        span.nextSibling?.remove();
        span.remove();
      }
      words = [];
    },
  };
}

/** Returns the length of the part of the text that consists of complete sentences. */
function lastEnd(text) {
  const end = [...text.matchAll(sentenceEnd)].at(-1);
  return end ? end.index + end[0].length : 0;
}

/**
 * Returns how many characters of an edited text count as sent. Corrections inside the sent part have no
 * effect. If the end of the sent part changes, its last word is sent again.
 * @param cursor the position of the cursor after the edit.
 */
function sentAfter(before, sent, after, cursor) {
  if (after.startsWith(before.slice(0, sent))) return sent;
  const pending = before.length - sent;
  if (after.length - cursor > pending) return after.length - pending;
  let common = 0;
  while (common < sent && before[common] === after[common]) common += 1;
  return after.slice(0, common).search(/\S*$/);
}
