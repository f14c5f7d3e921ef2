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

/** Applies events of a client and of a model tier to a session, and returns the resulting actions. */
function play(events: readonly string[], options: Partial<SessionOptions> = {}): string[] {
  const session = new TextSession({ ...usual, ...options });
  let running = -1;
  return events.flatMap((event) => {
    const actions = perform(session, event, running);
    for (const action of actions) if (action.kind === "speak") running = action.synthesis.number;
    return actions.map((action) => describeAction(action).replace(" {} ", " "));
  });
}

/**
 * Applies one event: `a: text` is text with context `a`, `text` is text without a context, `<flush>` is a
 * flush.
 */
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
  test("synthesizes a sentence when a space follows it", () => {
    expect(play(["Hello", "."])).toEqual([]);
    expect(play(["Hello.", " "])).toEqual(["speak 0 null Hello."]);
    expect(play(["2.5 ml Dr. Smith"])).toEqual([]);
  });

  test("collects sentences for the next synthesis while a synthesis runs", () => {
    expect(play(["One. ", "Two. ", "Three. Fo", "<finished>"])).toEqual([
      "speak 0 null One.",
      "speak 1 null Two. Three.",
    ]);
  });

  test("sends done without a context id after all text is synthesized", () => {
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
  test("synthesizes only at a flush, with one done for each flush", () => {
    const events = ["One. Two. ", "<flush>", "Three.", "<flush>", "<finished>", "<finished>"];
    expect(play(events, { mode: "never" })).toEqual([
      "speak 0 null One. Two.",
      "done null",
      "speak 1 null Three.",
      "done null",
    ]);
  });

  test("does not commit text when a new context starts", () => {
    expect(play(["a: One.", "b: Two."], { mode: "never" })).toEqual([]);
    expect(play(["a: One.", "b: Two.", "<flush>", "<finished>", "<finished>"], { mode: "never" })).toEqual([
      "speak 0 a One.",
      "done a",
      "speak 1 b Two.",
      "done b",
    ]);
  });
});

describe("a context of a session", () => {
  test("sends its done only after a flush", () => {
    expect(play(["a: One. ", "<finished>", "a: Two. ", "<finished>", "<flush>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("ends when a new context starts, and no synthesis contains text of both contexts", () => {
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

  test("sends one done even if it has no text to synthesize", () => {
    expect(play(["a:  ", "<flush>"])).toEqual(["done a"]);
    expect(play(["a: ", "b: ", "<eos>"])).toEqual(["done a", "done b", "close ended"]);
  });

  test("continues with later texts without a context id", () => {
    expect(play(["a: One. ", "Two. ", "<flush>", "<finished>", "<finished>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("is not reopened by a space after its flush", () => {
    expect(play(["a: One.", "<flush>", "<finished>", "a:  ", "b: Two. "])).toEqual([
      "speak 0 a One.",
      "done a",
      "speak 1 b Two.",
    ]);
  });
});

describe("a flush of a session", () => {
  test("causes no event if no text waits", () => {
    expect(play(["<flush>", " ", "<flush>"])).toEqual([]);
    expect(play(["One. ", "<finished>", "<flush>"])).toEqual(["speak 0 null One.", "done null"]);
  });

  test("causes no second done during the synthesis of the last text", () => {
    expect(play(["a: One. ", "<flush>", "<flush>", "<finished>"])).toEqual(["speak 0 a One.", "done a"]);
  });

  test.each(["bySentence", "immediate", "never"] as const)(
    "separates three texts in three contexts into three syntheses in mode %s",
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

describe("a clear of a session", () => {
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

  test("keeps the context id for later texts", () => {
    expect(play(["a: One. ", "<clear>", "Two. "])).toEqual([
      "speak 0 a One.",
      "stop",
      "done a",
      "speak 1 a Two.",
    ]);
  });

  test("drops only text that was not committed in clear mode buffer", () => {
    const sent = ["a: One. ", "a: Two. ", "<clear>", "<finished>", "<flush>"];
    expect(play(sent, { clearMode: "buffer" })).toEqual(["speak 0 a One.", "done a"]);
    expect(play(["a: One", "<clear>", "<flush>"], { clearMode: "buffer" })).toEqual([]);
  });
});

describe("the end of a session", () => {
  test("sends a done and closes if no text waits", () => {
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

  test("waits for the open contexts if the server drains", () => {
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

describe("a failed synthesis of a session", () => {
  test("ends its context without a done, and the next context is synthesized", () => {
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
  test("split a text between sentences, with one done for all parts", () => {
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

test("a session synthesizes texts with different markup separately", () => {
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
