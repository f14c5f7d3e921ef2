import { ports } from "./names.ts";

/**
 * Returns the port of a collector's URL. Without a port in the URL it is 4317, the default port of OTLP, or
 * 443 with TLS.
 */
export function collectorPort(url: string, protocol: string): number {
  const [, scheme, port] = /^(\w+):\/\/[^/?#]*?(?::(\d+))?(?:[/?#]|$)/.exec(url) ?? [];
  if (port !== undefined) return Number(port);
  if (scheme === "https") return 443;
  return protocol === "grpc" ? ports.otlpGrpc : ports.otlpHttp;
}
