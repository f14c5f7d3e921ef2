import { describe, expect, test } from "vitest";
import { type SessionOptions, TextSession } from "../../../../server/api/sockets/text-session.ts";
import { describeAction } from "../../../support/sockets/reference-session.ts";

const usual: SessionOptions = {
  mode: "bySentence",
  clearMode: "abort",
  language: "eng",
  commas: false,
  longestText: 1000,
  longestBacklog: 10_000,
};

/** Sends the events of a client and a model tier, and collects the actions of the connection. */
function play(events: readonly string[], options: Partial<SessionOptions> = {}): string[] {
  const session = new TextSession({ ...usual, ...options });
  let running = -1;
  return events.flatMap((event) => {
    const actions = perform(session, event, running);
    for (const action of actions) if (action.kind === "speak") running = action.synthesis.number;
    return actions.map((action) => describeAction(action).replace(" {} ", " "));
  });
}

/** Parses events: `a: text` and `text` are received text, and words in angle brackets are other events. */
function perform(session: TextSession, event: string, running: number) {
  switch (event) {
    case "<flush>":
      return session.flush();
    case "<clear>":
      return session.clear();
    case "<eos>":
      return session.eos();
    case "<silence>":
      return session.silence();
    case "<drain>":
      return session.drain();
    case "<finished>":
      return session.finished(running);
    case "<failed>":
      return session.failed(running);
    default: {
      const [, contextId = null, text = event] = /^(\w): (.*)$/s.exec(event) ?? [];
      return session.text({ text, contextId });
    }
  }
}

describe("the mode bySentence", () => {
  test("synthesizes a sentence once a space follows it", () => {
    expect(play(["Hello", "."])).toEqual([]);
    expect(play(["Hello.", " "])).toEqual(["speak 0 null Hello."]);
    expect(play(["2.5 ml Dr. Smith"])).toEqual([]);
  });

  test("collects sentences for the next synthesis while one is running", () => {
    expect(play(["One. ", "Two. ", "Three. Fo", "<finished>"])).toEqual([
      "speak 0 null One.",
      "speak 1 null Two. Three.",
    ]);
  });

  test("without a context id, sends done after everything is synthesized", () => {
    expect(play(["One. ", "<finished>", "Two. ", "<finished>"])).toEqual([
      "speak 0 null One.",
      "done null",
      "speak 1 null Two.",
      "done null",
    ]);
    expect(play(["One. Tw", "<finished>"])).toEqual(["speak 0 null One."]);
  });
});

describe("the mode immediate", () => {
  test("synthesizes the available text, and collects text during a synthesis", () => {
    expect(play(["One", " two", " three", "<finished>", "<finished>"], { mode: "immediate" })).toEqual([
      "speak 0 null One",
      "speak 1 null two three",
      "done null",
    ]);
  });
});

describe("the mode never", () => {
  test("synthesizes only at a flush, with one done for each", () => {
    const events = ["One. Two. ", "<flush>", "Three.", "<flush>", "<finished>", "<finished>"];
    expect(play(events, { mode: "never" })).toEqual([
      "speak 0 null One. Two.",
      "done null",
      "speak 1 null Three.",
      "done null",
    ]);
  });

  test("does not commit a text when a new context follows it", () => {
    expect(play(["a: One.", "b: Two."], { mode: "never" })).toEqual([]);
    expect(play(["a: One.", "b: Two.", "<flush>", "<finished>", "<finished>"], { mode: "never" })).toEqual([
      "speak 0 a One.",
      "done a",
      "speak 1 b Two.",
      "done b",
    ]);
  });
});

describe("a context", () => {
  test("holds its done until the flush, however long the sentences take", () => {
    expect(play(["a: One. ", "<finished>", "a: Two. ", "<finished>", "<flush>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("ends when a new context starts, and no synthesis mixes the two", () => {
    expect(play(["a: One", "b: Two. ", "<finished>", "<finished>", "<flush>"])).toEqual([
      "speak 0 a One",
      "done a",
      "speak 1 b Two.",
      "done b",
    ]);
  });

  test("ends after a long silence", () => {
    expect(play(["a: One. Two.", "<finished>", "<silence>", "<finished>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
    expect(play(["a: One.", "<silence>"], { mode: "never" })).toEqual([]);
    expect(play(["One.", "<silence>"])).toEqual([]);
  });

  test("has one done also if nothing in it can be synthesized", () => {
    expect(play(["a:  ", "<flush>"])).toEqual(["done a"]);
    expect(play(["a: ", "b: ", "<eos>"])).toEqual(["done a", "done b", "close ended"]);
  });

  test("keeps its id for later texts without one", () => {
    expect(play(["a: One. ", "Two. ", "<flush>", "<finished>", "<finished>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("is not opened again by a space after its flush", () => {
    expect(play(["a: One.", "<flush>", "<finished>", "a:  ", "b: Two. "])).toEqual([
      "speak 0 a One.",
      "done a",
      "speak 1 b Two.",
    ]);
  });
});

describe("a flush", () => {
  test("with nothing to synthesize causes no event", () => {
    expect(play(["<flush>", " ", "<flush>"])).toEqual([]);
    expect(play(["One. ", "<finished>", "<flush>"])).toEqual(["speak 0 null One.", "done null"]);
  });

  test("during the synthesis of the last text adds no second done", () => {
    expect(play(["a: One. ", "<flush>", "<flush>", "<finished>"])).toEqual(["speak 0 a One.", "done a"]);
  });

  test.each(["bySentence", "immediate", "never"] as const)(
    "three texts in three contexts without a pause are three syntheses (%s)",
    (mode) => {
      const sent = ["a: One.", "<flush>", "b: Two.", "<flush>", "c: Three.", "<flush>"];
      expect(play([...sent, "<finished>", "<finished>", "<finished>"], { mode })).toEqual([
        "speak 0 a One.",
        "done a",
        "speak 1 b Two.",
        "done b",
        "speak 2 c Three.",
        "done c",
      ]);
    },
  );
});

describe("a clear", () => {
  test("stops the synthesis and drops all waiting text, with one done", () => {
    expect(play(["a: One. Two. ", "<flush>", "a: Three", "<clear>", "<finished>"])).toEqual([
      "speak 0 a One. Two.",
      "stop",
      "done a",
    ]);
  });

  test("causes no event if nothing is running or waiting", () => {
    expect(play(["<clear>"])).toEqual([]);
    expect(play(["a: One.", "<flush>", "<finished>", "<clear>", "<flush>"])).toEqual([
      "speak 0 a One.",
      "done a",
    ]);
  });

  test("keeps the context id", () => {
    expect(play(["a: One. ", "<clear>", "Two. "])).toEqual([
      "speak 0 a One.",
      "stop",
      "done a",
      "speak 1 a Two.",
    ]);
  });

  test("in the mode buffer drops only text that was not committed", () => {
    const sent = ["a: One. ", "a: Two. ", "<clear>", "<finished>", "<flush>"];
    expect(play(sent, { clearMode: "buffer" })).toEqual(["speak 0 a One.", "done a"]);
    expect(play(["a: One", "<clear>", "<flush>"], { clearMode: "buffer" })).toEqual([]);
  });
});

describe("the end of a session", () => {
  test("without text is a done and a close", () => {
    expect(play(["<eos>"])).toEqual(["done null", "close ended"]);
    expect(play(["a: One.", "<flush>", "<finished>", "<eos>"])).toEqual([
      "speak 0 a One.",
      "done a",
      "done a",
      "close ended",
    ]);
  });

  test("waits for all earlier text, and ignores later text", () => {
    expect(play(["One.", "<eos>", "Two.", "<flush>", "<finished>"])).toEqual([
      "speak 0 null One.",
      "done null",
      "close ended",
    ]);
  });

  test("still sends done if its last synthesis fails or is cleared", () => {
    expect(play(["a: One.", "<eos>", "<failed>"])).toEqual(["speak 0 a One.", "done a", "close ended"]);
    expect(play(["a: One.", "<eos>", "<clear>"])).toEqual([
      "speak 0 a One.",
      "stop",
      "done a",
      "close ended",
    ]);
  });

  test("of the server waits for the open contexts", () => {
    expect(play(["<drain>"])).toEqual(["close draining"]);
    expect(play(["a: One. ", "<drain>", "<finished>", "a: Two. ", "<flush>", "<finished>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
      "close draining",
    ]);
    expect(play(["One.", "<drain>", "<silence>", "<finished>"])).toEqual([
      "speak 0 null One.",
      "done null",
      "close draining",
    ]);
  });
});

describe("a failed synthesis", () => {
  test("ends its turn without a done, and the next turn is synthesized", () => {
    expect(play(["a: One. Two.", "<flush>", "b: Three. ", "<failed>"])).toEqual([
      "speak 0 a One.",
      "speak 2 b Three.",
    ]);
  });

  test("leaves the context usable", () => {
    expect(play(["a: One. Tw", "<failed>", "a: Three. ", "<finished>", "<flush>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Three.",
      "done a",
    ]);
  });
});

describe("the limits of a session", () => {
  test("divide a text between sentences, with one done for all", () => {
    expect(play(["a: One. Two.", "<flush>", "<finished>", "<finished>"], { longestText: 5 })).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("close the socket for a sentence above the limit", () => {
    expect(play(["One two. ", "Three. "], { longestText: 5 })).toEqual(["close tooLong"]);
  });

  test("close the socket for a backlog above the limit", () => {
    expect(play(["12345", "6", "7"], { longestBacklog: 6 })).toEqual(["close tooLong"]);
    const empty = Array.from({ length: 8 }, (_, i) => `${i}: `);
    expect(play(["a: One. ", ...empty], { longestBacklog: 6 }).at(-1)).toBe("close tooLong");
  });
});

test("texts with different markup are synthesized separately", () => {
  const session = new TextSession(usual);
  const phonemes = { phonemizeBetweenBrackets: true };
  const speak = [
    ...session.text({ text: "One ", contextId: "a" }),
    ...session.text({ text: "{k1Ast0xm}. ", contextId: "a", markup: phonemes }),
    ...session.finished(0),
  ].map((action) => (action.kind === "speak" ? action.synthesis : action));
  expect(speak).toEqual([
    { number: 0, contextId: "a", text: "One", markup: {} },
    { number: 1, contextId: "a", text: "{k1Ast0xm}.", markup: phonemes },
  ]);
});
