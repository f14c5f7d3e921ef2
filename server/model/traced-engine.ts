import type { Engine } from "../engine/runtime/engine.ts";
import type { Span } from "../tracing/span.ts";
import { asFailure } from "./synthesis.ts";

/** The highest number of phrases in a trace. A text may have thousands of phrases. */
const maxSpans = 32;

/**
 * Returns an engine that records a span for each utterance. The span includes the wait for a process, the
 * synthesis, and the time in which the client reads. Its child span covers the time in which the utterance
 * occupies an engine process. The child span ends when the process can run another utterance, also after a
 * client has disconnected.
 */
export function traced(engine: Engine, parent: Span): Engine {
  let spans = 0;
  return {
    name: engine.name,
    rate: engine.rate,
    ...(engine.tokensPerSecond && { tokensPerSecond: engine.tokensPerSecond }),
    capacity: engine.capacity,
    ...(engine.worksAhead && { worksAhead: true }),
    restarts: engine.restarts,
    healthy: () => engine.healthy(),
    close: () => engine.close(),
    async *speak(utterance, signal, onWritten, onBegun) {
      spans++;
      if (spans > maxSpans) return yield* engine.speak(utterance, signal, onWritten, onBegun);
      const span = parent.child("engine", {
        "svc.engine": engine.name,
        "svc.words": utterance.tokens.length,
      });
      const onProcessBegun = () => {
        const occupied = span.child("engine process");
        const onFree = onBegun?.();
        return () => {
          occupied.end();
          onFree?.();
        };
      };
      try {
        yield* engine.speak(utterance, signal, onWritten, onProcessBegun);
      } catch (error) {
        span.end(asFailure(error).code);
        throw error;
      } finally {
        span.end();
      }
    },
  };
}
