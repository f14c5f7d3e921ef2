import { type Clock, systemClock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";

/**
 * Limits the memory that all requests of this process hold for large bodies and JSON responses. A request
 * that needs more memory waits in a queue for a bounded time. To avoid a deadlock, the newest request that
 * holds memory does not wait, but fails and releases its memory.
 */
export interface MemoryBudget {
  /** Creates the reservation of one request, which has 0 bytes at first. */
  open(): MemoryReservation;
  heldBytes(): number;
}

export interface MemoryReservation {
  /**
   * Reserves additional bytes, and waits until enough memory is free.
   * @throws Failure `overloaded` if the wait exceeds its limit, the bytes do not fit into the budget, or the
   * request has ended. In this case all memory of the request is released.
   */
  take(bytes: number): Promise<void>;
  /** Releases bytes that the request no longer needs. */
  release(bytes: number): void;
  /** Releases all memory of the request. Further calls have no effect. */
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
  const queue: Waiting[] = [];
  /** The requests that hold memory, ordered by their first reservation. */
  const holders = new Set<MemoryReservation>();

  /** Grants memory strictly in order, so that small requests do not delay a large request indefinitely. */
  const serve = () => {
    for (let first = queue[0]; first && held + first.bytes <= totalBytes; first = queue[0]) {
      queue.shift();
      first.grant();
    }
  };
  const leave = (waiting: Waiting) => {
    const position = queue.indexOf(waiting);
    if (position >= 0) queue.splice(position, 1);
    serve(); // The next request may fit.
  };

  return {
    heldBytes: () => held,
    open() {
      let own = 0;
      const over = new AbortController();
      const isNewestHolder = () => own > 0 && [...holders].at(-1) === reservation;
      const get = async (bytes: number) => {
        const hold = () => {
          held += bytes;
          own += bytes;
          holders.add(reservation);
        };
        if (over.signal.aborted || own + bytes > totalBytes) throw overloaded();
        if (queue.length === 0 && held + bytes <= totalBytes) return hold();
        if (isNewestHolder()) throw overloaded();
        await waitInQueue(queue, { bytes, hold, leave, waitMs, clock, abandoned: over.signal });
      };
      const reservation: MemoryReservation = {
        async take(bytes) {
          try {
            await get(bytes);
          } catch (error) {
            reservation.free();
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
          holders.delete(reservation);
          held -= own;
          own = 0;
          serve();
        },
      };
      return reservation;
    },
  };
}

interface QueueEntry {
  readonly bytes: number;
  /** The queue calls this function when the bytes are granted. */
  readonly hold: () => void;
  /** The queue calls this function when the wait ends without the bytes. */
  readonly leave: (waiting: Waiting) => void;
  readonly waitMs: number;
  readonly clock: Clock;
  readonly abandoned: AbortSignal;
}

/**
 * Waits until the bytes are granted.
 * @throws Failure `overloaded` after the longest wait, or when the request has ended.
 */
function waitInQueue(
  queue: Waiting[],
  { bytes, hold, leave, waitMs, clock, abandoned }: QueueEntry,
): Promise<void> {
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
    queue.push(waiting);
  });
}

function overloaded(): Failure {
  return new Failure(
    "overloaded",
    "The server's memory for large requests is in use; try again in a moment, or send smaller requests.",
    { retryAfterSeconds: 2 },
  );
}
