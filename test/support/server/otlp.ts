import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import type { TracingSettings } from "../../../server/tracing/settings.ts";

/** A span of an OTLP/JSON request. */
export interface ReceivedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** The span kind: 1 is internal, 2 is server, 3 is client. */
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The status. Code 2 is an error. */
  readonly status: { readonly code?: number; readonly message?: string };
}

/** A metric of an OTLP/JSON request. */
export interface ReceivedMetric {
  readonly resource: Readonly<Record<string, string | number | boolean>>;
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  /** Only sums have this field. */
  readonly isMonotonic: boolean;
  readonly points: readonly ReceivedPoint[];
}

export interface ReceivedPoint {
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Gauges and sums have this field. */
  readonly value?: number;
  /** Histograms have this field and the following fields. */
  readonly count?: number;
  readonly sum?: number;
  readonly bounds?: readonly number[];
}

export interface OtlpReceiver {
  readonly url: string;
  readonly posts: { readonly path: string; readonly type: string; readonly body: Buffer }[];
  /** The status code of all further responses. A test may change it. */
  status: number;
  /** The number of requests with a response other than 200. */
  readonly refused: number;
  /** Returns the spans of all JSON requests. */
  spans(): ReceivedSpan[];
  /** Returns the metrics of all JSON requests in the order of their arrival. */
  metrics(): ReceivedMetric[];
  close(): Promise<void>;
}

/** Starts a server that receives traces and metrics over HTTP, like a collector. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const posts: OtlpReceiver["posts"] = [];
  let refused = 0;
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (receiver.status === 200) {
      posts.push({
        path: request.url ?? "",
        type: request.headers["content-type"] ?? "",
        body: Buffer.concat(pieces),
      });
    } else refused += 1;
    response.writeHead(receiver.status, { "content-type": request.headers["content-type"] ?? "" });
    response.end(request.headers["content-type"] === "application/json" ? "{}" : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const jsonPosts = () => posts.filter(({ type }) => type === "application/json").map(({ body }) => body);
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posts,
    status: 200,
    get refused() {
      return refused;
    },
    spans: () => jsonPosts().flatMap(readSpans),
    metrics: () => jsonPosts().flatMap(readMetrics),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

export interface SilentCollector extends AsyncDisposable {
  readonly url: string;
  /** Returns the number of connections so far. */
  tries(): number;
  /** Returns the number of open connections. */
  open(): number;
}

/**
 * Starts a server that accepts connections but does not respond. With `hangsUp`, it closes each connection
 * immediately.
 */
export async function startSilentCollector({ hangsUp = false } = {}): Promise<SilentCollector> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined).resume(); // A client that gives up resets the connection.
    if (hangsUp) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tries: () => sockets.length,
    open: () => sockets.filter(({ destroyed }) => !destroyed).length,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Returns settings that send every span of a service to a receiver. */
export function tracingTo(
  url: string,
  serviceName: string,
  more: Partial<TracingSettings> = {},
): TracingSettings {
  return {
    url: `${url}/v1/traces`,
    protocol: "http/json",
    serviceName,
    resourceAttributes: {},
    sampler: { name: "parentbased_always_on", ratio: 1 },
    ...more,
  };
}

interface Keyed {
  key: string;
  value: { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
}

interface ResourceSpans {
  resource: { attributes: Keyed[] };
  scopeSpans: {
    spans: (Omit<ReceivedSpan, "service" | "attributes" | "startMs" | "endMs"> & {
      startTimeUnixNano: string;
      endTimeUnixNano: string;
      attributes: Keyed[];
    })[];
  }[];
}

function readSpans(body: Buffer): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(body.toString()) as { resourceSpans: ResourceSpans[] };
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ attributes, startTimeUnixNano, endTimeUnixNano, ...span }) => ({
        ...span,
        parentSpanId: span.parentSpanId ?? "",
        service: String(readAttributes(resource.attributes)["service.name"]),
        startMs: Number(startTimeUnixNano) / 1e6,
        endMs: Number(endTimeUnixNano) / 1e6,
        attributes: readAttributes(attributes),
      })),
    ),
  );
}

interface Points {
  isMonotonic?: boolean;
  dataPoints: {
    attributes?: Keyed[];
    asInt?: number | string;
    asDouble?: number;
    count?: number | string;
    sum?: number;
    explicitBounds?: number[];
  }[];
}

interface ResourceMetrics {
  resource: { attributes?: Keyed[] };
  scopeMetrics: {
    metrics: { name: string; unit: string; gauge?: Points; sum?: Points; histogram?: Points }[];
  }[];
}

function readMetrics(body: Buffer): ReceivedMetric[] {
  const { resourceMetrics = [] } = JSON.parse(body.toString()) as { resourceMetrics?: ResourceMetrics[] };
  return resourceMetrics.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) =>
      metrics.map(({ name, unit, gauge, sum, histogram }) => ({
        resource: readAttributes(resource.attributes ?? []),
        name,
        unit,
        kind: gauge ? "gauge" : sum ? "sum" : "histogram",
        isMonotonic: sum?.isMonotonic ?? false,
        points: readPoints(gauge ?? sum ?? histogram),
      })),
    ),
  );
}

function readPoints({ dataPoints }: Points = { dataPoints: [] }): ReceivedPoint[] {
  return dataPoints.map(({ attributes = [], asInt, asDouble, count, sum, explicitBounds }) => ({
    attributes: readAttributes(attributes),
    ...(count === undefined
      ? { value: Number(asInt ?? asDouble) }
      : { count: Number(count), sum: sum ?? 0, bounds: explicitBounds ?? [] }),
  }));
}

function readAttributes(list: readonly Keyed[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  );
}
