import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AcceptedTokens } from "../../../server/model/access.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;
let folder = "";
/**
 * The overlap is longer than the time in which the slowest kubelet updates a file and a model pod reads the
 * file, which it does once a second.
 */
const overlapMs = 2_500;
const slowestKubeletMs = 1_300;
/** The test advances the clock in steps of this length. Each client sends a request in each step. */
const stepMs = 100;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-tokens-"));
  // The clock starts at the real time, because the operator compares its clock with the API server's.
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

const requestRotation = (value: string) =>
  house.kubectl("annotate", "ttsd/demo", "--overwrite", `tts.svc.dev/rotate-token=${value}`);

/** Creates a model pod on the operator's clock. Its kubelet updates the files with a delay of `lagMs`. */
async function modelPod(lagMs: number, tokens: Tokens) {
  const path = await mkdtemp(join(folder, "pod-"));
  const update = ({ accepted }: Tokens) => writeFile(join(path, "accepted"), accepted);
  await update(tokens);
  const onUnreadable = (error: unknown) => {
    throw error;
  };
  const access = new AcceptedTokens({ kind: "folder", path }, onUnreadable, house.clock);
  return { lagMs, update, accepts: (token: string) => access.accepts(`Bearer ${token}`) };
}

/** The history of the Secret, for pods that read the Secret with a delay. */
class SecretHistory {
  readonly changes: { at: number; tokens: Tokens }[] = [];

  async record(): Promise<Tokens> {
    const tokens = await stored();
    if (JSON.stringify(tokens) !== JSON.stringify(this.changes.at(-1)?.tokens))
      this.changes.push({ at: house.clock.nowMs(), tokens });
    return tokens;
  }

  /** Returns the tokens at an earlier time. */
  before(lagMs: number): Tokens {
    const change = this.changes.findLast(({ at }) => at <= house.clock.nowMs() - lagMs) ?? this.changes[0];
    if (change === undefined) throw new Error("call record() before before(): the history has no tokens");
    return change.tokens;
  }
}

describe("the internal token", () => {
  it("is rotated on demand without a rejected request, also if kubelets update files late", async () => {
    const history = new SecretHistory();
    const first = await history.record();
    const models = await Promise.all([0, 400, slowestKubeletMs].map((lagMs) => modelPod(lagMs, first)));
    const rejected: string[] = [];
    let requests = 0;
    const sendFromEveryClient = async () => {
      await history.record();
      for (const model of models) await model.update(history.before(model.lagMs));
      for (const lagMs of [0, 700, slowestKubeletMs]) {
        const { token } = history.before(lagMs);
        const answers = await Promise.all(models.map((model) => model.accepts(token)));
        requests += answers.length;
        if (answers.includes(false)) rejected.push(`client with a delay of ${lagMs} ms: ${answers}`);
      }
    };
    await requestRotation("today");
    for (let passedMs = 0; passedMs < 4 * overlapMs; passedMs += stepMs) {
      await sendFromEveryClient();
      await house.advance(stepMs);
    }
    expect(history.changes.map(({ tokens }) => tokens.accepted.split("\n").length)).toEqual([1, 2, 2, 1]);
    expect(requests).toBeGreaterThan(500);
    expect(rejected).toEqual([]);
    // The model pods no longer accept the old token.
    expect(await Promise.all(models.map(({ accepts }) => accepts(first.token)))).not.toContain(true);
  });

  it("is rotated completely although the operator restarts after each step", async () => {
    const before = await stored();
    await requestRotation("again");
    const steps = new Set<string>();
    const isComplete = async () => {
      const { token, accepted } = await stored();
      return token !== before.token && accepted === token;
    };
    for (let step = 0; step < 8 && !(await isComplete()); step++) {
      await house.advance(overlapMs);
      steps.add(JSON.stringify(await stored()));
      await house.restart({ tokenOverlapMs: overlapMs });
    }
    expect(await isComplete()).toBe(true);
    expect(steps.size).toBeLessThanOrEqual(4);
    expect(await house.requestsDuring(1_800_000)).toEqual([]);
  });

  it("is restored with both accepted tokens if the Secret is deleted during a rotation", async () => {
    await requestRotation("third");
    await house.idle();
    const middle = await stored();
    expect(middle.accepted).toContain("\n");
    await house.remove("Secret", "demo-token");
    await house.idle();
    const { accepted } = await stored();
    expect(accepted.split("\n")).toEqual(middle.accepted.split("\n"));
  });
});
