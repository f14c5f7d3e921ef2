import type { ErrorCode } from "../contract/errors.ts";

/** The attributes of a span. Attributes must not contain text to synthesize, keys or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export type SpanKind = "internal" | "client";

/** One timed operation of a trace. */
export interface Span {
  /** Whether the span is sampled. For other spans, callers skip the computation of attributes. */
  readonly isRecording: boolean;
  /** The ID of the trace with 32 hexadecimal digits. The value is undefined if traces are off. */
  readonly traceId: string | undefined;
  /** The headers with which the receiver of a request continues this trace (W3C Trace Context). */
  readonly headers: Readonly<Record<string, string>>;
  child(name: string, attributes?: Attributes, kind?: SpanKind): Span;
  set(attributes: Attributes): void;
  /**
   * Ends the span. Only the first call has an effect.
   * @param code the error code, if the operation failed. A 4xx error does not set the error status of the
   * span.
   */
  end(code?: ErrorCode): void;
}

export interface Tracing {
  /**
   * Starts the span of an incoming request. If the headers contain a trace context, the span continues the
   * client's trace.
   * @param headers the headers of the request, by lower-case name.
   */
  begin(name: string, headers: IncomingHeaders, attributes?: Attributes): Span;
  /** Exports the remaining spans in bounded time, and stops. */
  stop(): Promise<void>;
}

export type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The span of all requests while traces are off. */
export const noSpan: Span = {
  isRecording: false,
  traceId: undefined,
  headers: {},
  child: () => noSpan,
  set: () => undefined,
  end: () => undefined,
};

export const noTracing: Tracing = { begin: () => noSpan, stop: async () => undefined };
