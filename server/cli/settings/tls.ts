import { env as names, ports } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import type { TlsSettings } from "../../api/lifecycle/tls-listener.ts";
import { type Environment, readers } from "./environment.ts";

/**
 * Reads the settings of the TLS listener. Returns `undefined` if neither file is set.
 * @throws UsageError if only one of the two files is set.
 */
export function readTls(environment: Environment): TlsSettings | undefined {
  const { text, integer } = readers(environment);
  const [certFile, keyFile] = [text(names.tlsCert), text(names.tlsKey)];
  const port = integer(names.tlsPort, ports.apiTls, 0, 65_535);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile, port };
  const [given, missing] =
    certFile === undefined ? [names.tlsKey, names.tlsCert] : [names.tlsCert, names.tlsKey];
  throw new UsageError(`${given} is set, but ${missing} is not. Set both, or neither.`);
}
