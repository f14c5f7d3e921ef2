import type { ErrorCode } from "../contract/errors.ts";

/** The attributes of a span. Never set spoken text, keys or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export type SpanKind = "internal" | "client";

/** A timed operation that is shown in the trace. */
export interface Span {
  /** False if the span is not sampled, so that its attributes need not be computed. */
  readonly isRecording: boolean;
  /** 32 hexadecimal digits. Undefined if traces are off. */
  readonly traceId: string | undefined;
  /** Headers by which the receiver continues this trace, as a child of this span (W3C Trace Context). */
  readonly headers: Readonly<Record<string, string>>;
  child(name: string, attributes?: Attributes, kind?: SpanKind): Span;
  set(attributes: Attributes): void;
  /**
   * Only the first call has an effect.
   * @param code the failure. A failure that the client caused does not make the span an error.
   */
  end(code?: ErrorCode): void;
}

export interface Tracing {
  /**
   * Starts the span of an incoming request, as a child of the client's span if its headers name one.
   * @param headers of the request, by lower-case name.
   */
  begin(name: string, headers: IncomingHeaders, attributes?: Attributes): Span;
  /** Sends the remaining spans, in bounded time, and stops. */
  stop(): Promise<void>;
}

export type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Used if traces are off. It costs nothing. */
export const noSpan: Span = {
  isRecording: false,
  traceId: undefined,
  headers: {},
  child: () => noSpan,
  set: () => undefined,
  end: () => undefined,
};

export const noTracing: Tracing = { begin: () => noSpan, stop: async () => undefined };
