import { ports } from "./names.ts";

/** The port of the collector that arcana sends to, by a URL: one that is not named is OTLP's own, with TLS 443. */
export function collectorPort(url: string, protocol: string): number {
  const [, scheme, port] = /^(\w+):\/\/[^/?#]*?(?::(\d+))?(?:[/?#]|$)/.exec(url) ?? [];
  if (port !== undefined) return Number(port);
  if (scheme === "https") return 443;
  return protocol === "grpc" ? ports.otlpGrpc : ports.otlpHttp;
}
