import { type Clock, systemClock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";

/**
 * Limits the memory of all requests of this process for whole bodies and whole responses. A request that
 * needs more waits in a queue for a bounded time. To avoid a deadlock, the last of the requests that hold
 * memory and need more does not wait but releases its memory.
 */
export interface MemoryBudget {
  /** The memory of one request, initially 0. */
  open(): MemoryReservation;
  heldBytes(): number;
}

export interface MemoryReservation {
  /**
   * Reserves this many additional bytes when others have released enough.
   * @throws Failure `overloaded` if the wait exceeds its limit, the bytes do not fit into the budget, or the
   * request has ended. The request's memory is then released.
   */
  take(bytes: number): Promise<void>;
  /** Releases this many bytes that are not needed. */
  release(bytes: number): void;
  /** Releases everything. It may be called more than once. */
  free(): void;
}

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

export function createMemoryBudget(
  totalBytes: number,
  waitMs: number,
  clock: Clock = systemClock,
): MemoryBudget {
  let held = 0;
  const line: Waiting[] = [];
  /** In the order of arrival. */
  const holders = new Set<MemoryReservation>();

  /** Strictly in order, so that small requests do not overtake a large one indefinitely. */
  const serve = () => {
    for (let first = line[0]; first && held + first.bytes <= totalBytes; first = line[0]) {
      line.shift();
      first.grant();
    }
  };
  const leave = (waiting: Waiting) => {
    const place = line.indexOf(waiting);
    if (place >= 0) line.splice(place, 1);
    serve(); // A request behind it may fit.
  };

  return {
    heldBytes: () => held,
    open() {
      let own = 0;
      const over = new AbortController();
      const isLastToCome = () => own > 0 && [...holders].at(-1) === allotment;
      const get = async (bytes: number) => {
        const hold = () => {
          held += bytes;
          own += bytes;
          holders.add(allotment);
        };
        if (over.signal.aborted || own + bytes > totalBytes) throw overloaded();
        if (line.length === 0 && held + bytes <= totalBytes) return hold();
        if (isLastToCome()) throw overloaded();
        await joinLine(line, { bytes, hold, leave, waitMs, clock, abandoned: over.signal });
      };
      const allotment: MemoryReservation = {
        async take(bytes) {
          try {
            await get(bytes);
          } catch (error) {
            allotment.free();
            throw error;
          }
        },
        release(bytes) {
          const unneeded = Math.min(bytes, own);
          held -= unneeded;
          own -= unneeded;
          serve();
        },
        free() {
          over.abort();
          holders.delete(allotment);
          held -= own;
          own = 0;
          serve();
        },
      };
      return allotment;
    },
  };
}

interface Place {
  readonly bytes: number;
  /** Called when the bytes are granted. */
  readonly hold: () => void;
  /** Called when the wait is abandoned. */
  readonly leave: (waiting: Waiting) => void;
  readonly waitMs: number;
  readonly clock: Clock;
  readonly abandoned: AbortSignal;
}

/**
 * Resolves when the bytes are granted. @throws Failure `overloaded` after the wait, or when the request is
 * abandoned.
 */
function joinLine(line: Waiting[], { bytes, hold, leave, waitMs, clock, abandoned }: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      cancelTimer();
      abandoned.removeEventListener("abort", giveUp);
      settle();
    };
    const giveUp = () => {
      leave(waiting);
      end(() => reject(overloaded()));
    };
    const grant = () => {
      hold();
      end(resolve);
    };
    const waiting = { bytes, grant };
    const cancelTimer = clock.after(waitMs, giveUp);
    abandoned.addEventListener("abort", giveUp);
    line.push(waiting);
  });
}

function overloaded(): Failure {
  return new Failure(
    "overloaded",
    "The server's memory for large requests is in use; try again in a moment, or send smaller requests.",
    { retryAfterSeconds: 2 },
  );
}
