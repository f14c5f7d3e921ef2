import { ports } from "./names.ts";

/**
 * Returns the port of a collector's URL. For a URL without a port it returns 443 for https, and otherwise the
 * default port of OTLP: 4317 for gRPC, 4318 for HTTP.
 */
export function collectorPort(url: string, protocol: string): number {
  const [, scheme, port] = /^(\w+):\/\/[^/?#]*?(?::(\d+))?(?:[/?#]|$)/.exec(url) ?? [];
  if (port !== undefined) return Number(port);
  if (scheme === "https") return 443;
  return protocol === "grpc" ? ports.otlpGrpc : ports.otlpHttp;
}
