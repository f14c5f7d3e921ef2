/** An engine process on a machine without the engine's library. */
import { reportStartFailure } from "../../server/engine/serve-jobs.ts";

reportStartFailure("The library cannot be loaded. Install it: apt-get install the-library");
