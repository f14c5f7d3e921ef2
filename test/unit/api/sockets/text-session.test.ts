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

/** Plays events as a client and a model tier send them, and gathers what the connection has to do. */
function play(events: readonly string[], options: Partial<SessionOptions> = {}): string[] {
  const session = new TextSession({ ...usual, ...options });
  let running = -1;
  return events.flatMap((event) => {
    const actions = perform(session, event, running);
    for (const action of actions) if (action.kind === "speak") running = action.synthesis.number;
    return actions.map((action) => describeAction(action).replace(" {} ", " "));
  });
}

/** `a: text` and `text` arrive; words in angle brackets are the other events. */
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

describe("by sentence", () => {
  test("a sentence is spoken once a space follows it", () => {
    expect(play(["Hello", "."])).toEqual([]);
    expect(play(["Hello.", " "])).toEqual(["speak 0 null Hello."]);
    expect(play(["2.5 ml Dr. Smith"])).toEqual([]);
  });

  test("while one synthesis runs, sentences gather for the next", () => {
    expect(play(["One. ", "Two. ", "Three. Fo", "<finished>"])).toEqual([
      "speak 0 null One.",
      "speak 1 null Two. Three.",
    ]);
  });

  test("without a context id, done follows when everything is spoken", () => {
    expect(play(["One. ", "<finished>", "Two. ", "<finished>"])).toEqual([
      "speak 0 null One.",
      "done null",
      "speak 1 null Two.",
      "done null",
    ]);
    expect(play(["One. Tw", "<finished>"])).toEqual(["speak 0 null One."]);
  });
});

describe("immediate", () => {
  test("speaks what there is, and gathers while it speaks", () => {
    expect(play(["One", " two", " three", "<finished>", "<finished>"], { mode: "immediate" })).toEqual([
      "speak 0 null One",
      "speak 1 null two three",
      "done null",
    ]);
  });
});

describe("never", () => {
  test("speaks at a flush alone, with one done for each", () => {
    const events = ["One. Two. ", "<flush>", "Three.", "<flush>", "<finished>", "<finished>"];
    expect(play(events, { mode: "never" })).toEqual([
      "speak 0 null One. Two.",
      "done null",
      "speak 1 null Three.",
      "done null",
    ]);
  });

  test("a new context does not commit the text before it", () => {
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

  test("ends by a new context, and no synthesis mixes the two", () => {
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

  test("has one done also when nothing of it can be spoken", () => {
    expect(play(["a:  ", "<flush>"])).toEqual(["done a"]);
    expect(play(["a: ", "b: ", "<eos>"])).toEqual(["done a", "done b", "close ended"]);
  });

  test("its id holds for later texts without one", () => {
    expect(play(["a: One. ", "Two. ", "<flush>", "<finished>", "<finished>"])).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("a space behind its flush does not open it again", () => {
    expect(play(["a: One.", "<flush>", "<finished>", "a:  ", "b: Two. "])).toEqual([
      "speak 0 a One.",
      "done a",
      "speak 1 b Two.",
    ]);
  });
});

describe("flush", () => {
  test("with nothing to speak causes no event", () => {
    expect(play(["<flush>", " ", "<flush>"])).toEqual([]);
    expect(play(["One. ", "<finished>", "<flush>"])).toEqual(["speak 0 null One.", "done null"]);
  });

  test("while the last text is spoken joins its done", () => {
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

describe("clear", () => {
  test("stops the synthesis and drops everything that waits, with one done", () => {
    expect(play(["a: One. Two. ", "<flush>", "a: Three", "<clear>", "<finished>"])).toEqual([
      "speak 0 a One. Two.",
      "stop",
      "done a",
    ]);
  });

  test("causes no event when nothing is spoken or owed", () => {
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

  test("in the mode buffer drops only what was not committed", () => {
    const sent = ["a: One. ", "a: Two. ", "<clear>", "<finished>", "<flush>"];
    expect(play(sent, { clearMode: "buffer" })).toEqual(["speak 0 a One.", "done a"]);
    expect(play(["a: One", "<clear>", "<flush>"], { clearMode: "buffer" })).toEqual([]);
  });
});

describe("the end", () => {
  test("without text is a done and a close", () => {
    expect(play(["<eos>"])).toEqual(["done null", "close ended"]);
    expect(play(["a: One.", "<flush>", "<finished>", "<eos>"])).toEqual([
      "speak 0 a One.",
      "done a",
      "done a",
      "close ended",
    ]);
  });

  test("waits for everything that was sent, and ignores what comes later", () => {
    expect(play(["One.", "<eos>", "Two.", "<flush>", "<finished>"])).toEqual([
      "speak 0 null One.",
      "done null",
      "close ended",
    ]);
  });

  test("still says done when its last synthesis fails or is cleared", () => {
    expect(play(["a: One.", "<eos>", "<failed>"])).toEqual(["speak 0 a One.", "done a", "close ended"]);
    expect(play(["a: One.", "<eos>", "<clear>"])).toEqual([
      "speak 0 a One.",
      "stop",
      "done a",
      "close ended",
    ]);
  });

  test("of the server waits for the contexts that are open", () => {
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

describe("a failure", () => {
  test("ends its turn without a done, and the next turn is spoken", () => {
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

describe("limits", () => {
  test("text is divided between sentences, with one done for all", () => {
    expect(play(["a: One. Two.", "<flush>", "<finished>", "<finished>"], { longestText: 5 })).toEqual([
      "speak 0 a One.",
      "speak 1 a Two.",
      "done a",
    ]);
  });

  test("a sentence above the limit closes the socket", () => {
    expect(play(["One two. ", "Three. "], { longestText: 5 })).toEqual(["close tooLong"]);
  });

  test("a backlog above the limit closes the socket", () => {
    expect(play(["12345", "6", "7"], { longestBacklog: 6 })).toEqual(["close tooLong"]);
    const empty = Array.from({ length: 8 }, (_, i) => `${i}: `);
    expect(play(["a: One. ", ...empty], { longestBacklog: 6 }).at(-1)).toBe("close tooLong");
  });
});

test("texts with other markup are spoken apart", () => {
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
