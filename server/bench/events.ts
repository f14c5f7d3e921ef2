/** The audio in a stream of server-sent events, ours (specification 4.1) and those of the OpenAI shape. */

/** An error event ended the stream. */
export class FailedEvent extends Error {
  /** Code of the problem in the event. */
  readonly code: string;

  constructor(code: string) {
    super(`the stream ended in an error event: ${code}`);
    this.name = "FailedEvent";
    this.code = code;
  }
}

/** Largest event that is collected: the audio of one JSON response. */
const maxEventChars = 128 * 1024 * 1024;
const enders = new Set(["done", "speech.audio.done"]);

/** @throws FailedEvent on an error event; Error if the events end without a final event. */
export async function* audioOfEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  let rest = "";
  let isComplete = false;
  for await (const piece of body) {
    rest += Buffer.from(piece).toString("latin1"); // Base64 and field names are ASCII, and no other part is read.
    const events = rest.split("\n\n");
    rest = events.pop() ?? "";
    if (rest.length > maxEventChars) throw new Error("an event without end");
    for (const event of events) {
      const { name, audio } = readEvent(event);
      if (audio !== undefined) yield Buffer.from(audio, "base64");
      isComplete ||= enders.has(name);
    }
  }
  if (!isComplete) throw new Error("events without an end");
}

interface EventData {
  readonly type?: string;
  readonly data?: string;
  readonly audio?: string;
  readonly code?: string;
  readonly error?: { readonly code?: string };
}

/** @throws FailedEvent */
function readEvent(text: string): { name: string; audio: string | undefined } {
  const data = /^data: ?(.*)$/m.exec(text)?.[1];
  if (data === undefined || data === "[DONE]") return { name: "", audio: undefined };
  const content = JSON.parse(data) as EventData;
  const name = /^event: ?(.*)$/m.exec(text)?.[1] ?? content.type ?? "";
  if (name === "error") throw new FailedEvent(content.code ?? content.error?.code ?? "error_event");
  if (name === "chunk") return { name, audio: content.data };
  return { name, audio: name === "speech.audio.delta" ? content.audio : undefined };
}
