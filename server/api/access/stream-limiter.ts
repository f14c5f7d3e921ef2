import { Failure } from "../../contract/errors.ts";

/** Limits the number of concurrent streams of one API process. */
export interface StreamLimiter {
  /**
   * Occupies a slot until the returned function is called.
   * @throws Failure `saturated` if every slot is occupied.
   */
  enter(): () => void;
}

export function createStreamLimiter(limit: number): StreamLimiter {
  let occupied = 0;
  return {
    enter() {
      if (occupied >= limit) {
        throw new Failure(
          "saturated",
          `This server has reached its limit of ${limit} concurrent streams; try again in a moment.`,
          {
            retryAfterSeconds: 1,
          },
        );
      }
      occupied += 1;
      let held = true;
      return () => {
        if (held) occupied -= 1;
        held = false;
      };
    },
  };
}
