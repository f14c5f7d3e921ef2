import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AcceptedTokens } from "../../../server/model/access.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;
let folder = "";
/** Model pods read their file once a second, and a kubelet takes longer to update it. */
const overlapMs = 2_500;
const slowestKubeletMs = 1_300;
/** Clients send requests at the same interval. */
const stepMs = 100;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-tokens-"));
  // operators compare their clock with that of the API server, which uses the machine's
  house = await OperatorHouse.open({ clock: new FakeClock(Date.now()) });
  await house.restart({ tokenOverlapMs: overlapMs });
  await house.ready();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

interface Tokens {
  readonly token: string;
  readonly accepted: string;
}

async function stored(): Promise<Tokens> {
  const { data } = await house.mustGet("Secret", "demo-token");
  const { token = "", accepted = "" } = data as Record<string, string>;
  const plain = (text: string) => Buffer.from(text, "base64").toString();
  return { token: plain(token), accepted: plain(accepted) };
}

const ask = (value: string) =>
  house.kubectl("annotate", "ttsd/demo", "--overwrite", `tts.svc.dev/rotate-token=${value}`);

/** A model pod on the operator's clock, whose kubelet updates its files with a delay of `lagMs`. */
async function modelPod(lagMs: number, tokens: Tokens) {
  const path = await mkdtemp(join(folder, "pod-"));
  const renew = ({ accepted }: Tokens) => writeFile(join(path, "accepted"), accepted);
  await renew(tokens);
  const onUnreadable = (error: unknown) => {
    throw error;
  };
  const access = new AcceptedTokens({ kind: "folder", path }, onUnreadable, house.clock);
  return { lagMs, renew, accepts: (token: string) => access.accepts(`Bearer ${token}`) };
}

/** The history of the Secret, for pods that read it with a delay. */
class History {
  readonly changes: { at: number; tokens: Tokens }[] = [];

  async look(): Promise<Tokens> {
    const tokens = await stored();
    if (JSON.stringify(tokens) !== JSON.stringify(this.changes.at(-1)?.tokens))
      this.changes.push({ at: house.clock.nowMs(), tokens });
    return tokens;
  }

  /** The token at an earlier time. */
  before(lagMs: number): Tokens {
    const found = this.changes.findLast(({ at }) => at <= house.clock.nowMs() - lagMs) ?? this.changes[0];
    if (found === undefined) throw new Error("no pod has read the token yet");
    return found.tokens;
  }
}

describe("the internal token", () => {
  it("is rotated on demand without a rejected request, also if pods update late", async () => {
    const history = new History();
    const first = await history.look();
    const models = await Promise.all([0, 400, slowestKubeletMs].map((lagMs) => modelPod(lagMs, first)));
    const refused: string[] = [];
    let asked = 0;
    const everyClientAsks = async () => {
      await history.look();
      for (const model of models) await model.renew(history.before(model.lagMs));
      for (const lagMs of [0, 700, slowestKubeletMs]) {
        const { token } = history.before(lagMs);
        const answers = await Promise.all(models.map((model) => model.accepts(token)));
        asked += answers.length;
        if (answers.includes(false)) refused.push(`a client ${lagMs} ms late: ${answers}`);
      }
    };
    await ask("today");
    for (let passedMs = 0; passedMs < 4 * overlapMs; passedMs += stepMs) {
      await everyClientAsks();
      await house.advance(stepMs);
    }
    expect(history.changes.map(({ tokens }) => tokens.accepted.split("\n").length)).toEqual([1, 2, 2, 1]);
    expect(asked).toBeGreaterThan(500);
    expect(refused).toEqual([]);
    // a revoked token is no longer accepted
    expect(await Promise.all(models.map(({ accepts }) => accepts(first.token)))).not.toContain(true);
  });

  it("is rotated completely by an operator that restarts after each step", async () => {
    const before = await stored();
    await ask("again");
    const steps = new Set<string>();
    const last = async () => {
      const { token, accepted } = await stored();
      return token !== before.token && accepted === token;
    };
    for (let step = 0; step < 8 && !(await last()); step++) {
      await house.advance(overlapMs);
      steps.add(JSON.stringify(await stored()));
      await house.restart({ tokenOverlapMs: overlapMs });
    }
    expect(await last()).toBe(true);
    expect(steps.size).toBeLessThanOrEqual(4);
    expect(await house.requestsDuring(1_800_000)).toEqual([]);
  });

  it("is restored with its overlap if the Secret is deleted during a rotation", async () => {
    await ask("third");
    await house.idle();
    const middle = await stored();
    expect(middle.accepted).toContain("\n");
    await house.remove("Secret", "demo-token");
    await house.idle();
    const { accepted } = await stored();
    expect(accepted.split("\n")).toEqual(middle.accepted.split("\n"));
  });
});
