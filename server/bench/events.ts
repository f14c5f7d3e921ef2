/**
 * Reads the audio in a stream of server-sent events, of this project (specification 4.1) or of the OpenAI
 * shape.
 */

/** Reports that the stream ended with an error event. */
export class FailedEvent extends Error {
  /** The code of the problem in the event. */
  readonly code: string;

  constructor(code: string) {
    super(`the stream ended with an error event: ${code}`);
    this.name = "FailedEvent";
    this.code = code;
  }
}

/** The limit for the length of an event, which may contain the audio of a whole response. */
const maxEventChars = 128 * 1024 * 1024;
const enders = new Set(["done", "speech.audio.done"]);

/**
 * Yields the audio of events.
 * @throws FailedEvent at an error event; Error if the events end without a final event.
 */
export async function* audioOfEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  let rest = "";
  let isComplete = false;
  for await (const piece of body) {
    // The parts that are read, Base64 and field names, are ASCII.
    rest += Buffer.from(piece).toString("latin1");
    const events = rest.split("\n\n");
    rest = events.pop() ?? "";
    if (rest.length > maxEventChars) throw new Error(`an event has more than ${maxEventChars} characters`);
    for (const event of events) {
      const { name, audio } = readEvent(event);
      if (audio !== undefined) yield Buffer.from(audio, "base64");
      isComplete ||= enders.has(name);
    }
  }
  if (!isComplete) throw new Error("the events ended without a final event");
}

interface EventData {
  readonly type?: string;
  readonly data?: string;
  readonly audio?: string;
  readonly code?: string;
  readonly error?: { readonly code?: string };
}

/**
 * Reads the name of an event, and its audio in Base64.
 * @throws FailedEvent if the event is an error.
 */
function readEvent(text: string): { name: string; audio: string | undefined } {
  const data = /^data: ?(.*)$/m.exec(text)?.[1];
  if (data === undefined || data === "[DONE]") return { name: "", audio: undefined };
  const content = JSON.parse(data) as EventData;
  const name = /^event: ?(.*)$/m.exec(text)?.[1] ?? content.type ?? "";
  if (name === "error") throw new FailedEvent(content.code ?? content.error?.code ?? "error_event");
  if (name === "chunk") return { name, audio: content.data };
  return { name, audio: name === "speech.audio.delta" ? content.audio : undefined };
}
