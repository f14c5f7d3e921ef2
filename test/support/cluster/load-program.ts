/** The options of the load generator. */
export interface LoadSettings {
  /** The number of clients that send HTTP requests. */
  readonly streams: number;
  /** The number of clients that send the text over a WebSocket, word by word, as a language model writes it. */
  readonly sockets: number;
  /** Whether clients read HTTP responses in real time, so that a stream lasts as long as its speech. */
  readonly listening: boolean;
  /** The clients finish when this file exists, or after the limit. */
  readonly stopFile: string;
  readonly limitSeconds: number;
  readonly key: string;
}

/** The results of all requests and contexts that the load generator sent. */
export interface LoadReport {
  /** The number of complete responses with status 200. */
  readonly ok: number;
  /** The number of failed requests and contexts. `failures` has the first twenty of them. */
  readonly failed: number;
  readonly failures: readonly { readonly atMs: number; readonly what: string }[];
  /** The different sizes of complete responses in bytes. A deterministic model has one size. */
  readonly sizes: readonly number[];
  /** The number of complete contexts on WebSockets, and the different sizes of their audio. */
  readonly contexts: number;
  readonly contextSizes: readonly number[];
  /** The number of WebSockets that the server closed with 1001 between two contexts. */
  readonly reconnects: number;
}

/** The generator prints this line when each client has received audio. */
export const allStreaming = "every stream has audio";

/**
 * The load generator, an ES module for `node -e`. Its arguments are the URL of the route for speech, the body of a
 * request as JSON, and the `LoadSettings` as JSON. It prints `answered` for each response, `spoken` for each context,
 * and finally the `LoadReport`. Requests and contexts that run when the load is stopped still finish.
 */
export const loadProgram = `
  import { existsSync } from "node:fs";
  const [url, body, settings] = process.argv.slice(1);
  const { streams, sockets, listening, stopFile, limitSeconds, key } = JSON.parse(settings);
  const { text, speaker, modelId, samplingRate = 24000 } = JSON.parse(body);
  const wordsPerSecond = 5;
  const mostUpgrades = 20;
  // The longest time between the close frame and the first words that cross it, on a busy machine.
  const closingMs = 1000;
  const start = Date.now();
  let ok = 0; let contexts = 0; let reconnects = 0;
  const failures = []; const sizes = new Set(); const contextSizes = new Set(); const speaking = new Set();
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const goesOn = () => !existsSync(stopFile) && Date.now() - start < limitSeconds * 1000;
  const fail = (what) => failures.push({ atMs: Date.now() - start, what });
  const begun = (client) => {
    if (speaking.size === streams + sockets) return;
    speaking.add(client);
    if (speaking.size === streams + sockets) console.log("${allStreaming}");
  };

  const take = async (answer, client) => {
    const bytesPerMs = 2 * Number(answer.headers.get("x-sampling-rate") ?? 16000) / 1000;
    const began = Date.now();
    let bytes = 0;
    for await (const piece of answer.body) {
      bytes += piece.byteLength;
      begun(client);
      const aheadMs = bytes / bytesPerMs - (Date.now() - began);
      if (listening && aheadMs > 0) await pause(aheadMs);
    }
    return bytes;
  };
  const request = async (_, index) => {
    // The clients start at different times, so that their streams do not all end together.
    if (listening) await pause(index * 250);
    while (goesOn()) {
      try {
        const answer = await fetch(url, { method: "POST", body, headers: {
          "content-type": "application/json", accept: "audio/pcm", authorization: "Bearer " + key } });
        if (answer.status === 200) {
          const bytes = await take(answer, "stream " + index);
          if (bytes > 1000) { ok++; sizes.add(bytes); }
          else fail("200, " + bytes + " bytes");
        } else fail(answer.status + ", " + await answer.text());
      } catch (error) {
        fail(String(error.cause ?? error));
      }
      console.log("answered");
      await pause(100);
    }
  };

  const query = new URLSearchParams({ speaker, modelId, samplingRate, audioFormat: "pcm" });
  const socketUrl = url.replace("http", "ws") + "/ws3?" + query;
  const connect = () => new Promise((resolve, reject) => {
    const socket = new WebSocket(socketUrl, { headers: { authorization: "Bearer " + key } });
    socket.addEventListener("open", () => resolve(socket));
    socket.addEventListener("close", ({ code, reason }) => {
      socket.closing = { code, reason };
      reject(new Error("the upgrade failed: " + code));
    });
  });
  // Sends one text word by word, and returns how the context ended.
  const say = (socket, contextId, client) => new Promise((resolve) => {
    let bytes = 0; let sent = 0; let isOver = false;
    const began = Date.now();
    const end = (how) => {
      if (isOver) return;
      isOver = true;
      socket.removeEventListener("message", onMessage);
      socket.removeEventListener("close", onClose);
      resolve({ ...how, bytes, sent, ageMs: Date.now() - began });
    };
    const onMessage = ({ data }) => {
      const event = JSON.parse(data);
      if (event.type === "chunk") { bytes += Buffer.from(event.data, "base64").length; begun(client); }
      else if (event.type === "error") end({ error: event.message });
      else if (event.type === "done") end({});
    };
    const onClose = ({ code, reason }) => end({ code, reason });
    socket.addEventListener("message", onMessage);
    socket.addEventListener("close", onClose);
    if (socket.closing) return end(socket.closing);
    void (async () => {
      for (const word of text.split(" ")) {
        if (isOver) return;
        socket.send(JSON.stringify({ text: word + " ", contextId }));
        sent++;
        await pause(1000 / wordsPerSecond);
      }
      if (!isOver) socket.send(JSON.stringify({ operation: "flush", contextId }));
    })();
  });
  // A pod that shuts down rejects new upgrades with 503 until its address is removed from the Service, so a
  // client connects again. No text is lost, because the client has not sent any text. Node's WebSocket
  // reports the status as code 1006.
  const connectAgain = async () => {
    for (let tries = 1; ; tries++) {
      try {
        return await connect();
      } catch (error) {
        if (tries === mostUpgrades) throw error;
        reconnects++;
        await pause(100);
      }
    }
  };
  const converse = async (_, index) => {
    await pause(index * 100);
    let socket;
    for (let turn = 0; goesOn(); turn++) {
      try {
        socket ??= await connectAgain();
        const { code, reason, error, bytes, sent, ageMs } = await say(socket, index + "-" + turn, "socket " + index);
        if (code !== undefined) socket = undefined;
        // The server may send the close frame of an idle socket before it receives the first words of the next
        // context. A context lasts several seconds, so most interrupted contexts are older than that.
        if (code === 1001 && bytes === 0 && ageMs < closingMs) reconnects++;
        else if (code !== undefined)
          fail("socket closed with " + code + " " + reason + " after " + bytes + " bytes, " + sent + " words and " + ageMs + " ms");
        else if (error !== undefined) fail("error on the socket: " + error);
        else if (bytes > 1000) { contexts++; contextSizes.add(bytes); console.log("spoken"); }
        else fail("a context with " + bytes + " bytes");
      } catch (error) {
        fail(String(error));
      }
      await pause(100);
    }
    socket?.close();
  };

  await Promise.all([...Array.from({ length: streams }, request), ...Array.from({ length: sockets }, converse)]);
  const report = { ok, failed: failures.length, failures: failures.slice(0, 20), sizes: [...sizes], contexts,
    contextSizes: [...contextSizes], reconnects };
  console.log(JSON.stringify(report));`;
