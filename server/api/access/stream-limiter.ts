import { Failure } from "../../contract/errors.ts";

/** Bounds how many requests one API process speaks at once. */
export interface StreamLimiter {
  /**
   * Takes a place until the returned function is called.
   * @throws Failure `saturated` when every place is taken.
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
          `This server speaks ${places} requests at once; try again in a moment.`,
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
