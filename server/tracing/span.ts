import type { ErrorCode } from "../contract/errors.ts";

/** The attributes of a span. Never set spoken text, keys or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export type SpanKind = "internal" | "client";

/** A piece of work that is timed, and shown where traces are collected. */
export interface Span {
  /** False if the span is not sampled, so that its attributes need not be computed. */
  readonly isRecording: boolean;
  /** 32 hexadecimal digits; undefined where traces are off. */
  readonly traceId: string | undefined;
  /** Headers by which the receiver continues this trace, as a child of this span (W3C Trace Context). */
  readonly headers: Readonly<Record<string, string>>;
  child(name: string, attributes?: Attributes, kind?: SpanKind): Span;
  set(attributes: Attributes): void;
  /** Only the first call counts. @param code what failed; a failure that is the caller's own does not make the span an error. */
  end(code?: ErrorCode): void;
}

export interface Tracing {
  /**
   * The span of a request that came in, a child of the caller's where its headers say so.
   * @param headers those of the request, by lower-case name.
   */
  begin(name: string, headers: IncomingHeaders, attributes?: Attributes): Span;
  /** Sends what is not sent yet, in bounded time, and stops. */
  stop(): Promise<void>;
}

export type IncomingHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Used where traces are off: costs nothing. */
export const noSpan: Span = {
  isRecording: false,
  traceId: undefined,
  headers: {},
  child: () => noSpan,
  set: () => undefined,
  end: () => undefined,
};

export const noTracing: Tracing = { begin: () => noSpan, stop: async () => undefined };
