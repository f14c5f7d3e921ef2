import { Failure } from "../../contract/errors.ts";

/** Limits the number of concurrent streams of one API process. */
export interface StreamLimiter {
  /**
   * Occupies a slot until the returned function is called.
   * @throws Failure `saturated` if every slot is occupied.
   */
  enter(): () => void;
}

export function createStreamLimiter(places: number): StreamLimiter {
  let taken = 0;
  return {
    enter() {
      if (taken >= places) {
        throw new Failure(
          "saturated",
          `This server synthesizes at most ${places} requests at once; try again in a moment.`,
          {
            retryAfterSeconds: 1,
          },
        );
      }
      taken += 1;
      let held = true;
      return () => {
        if (held) taken -= 1;
        held = false;
      };
    },
  };
}
