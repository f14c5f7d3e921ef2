/** The address and the API key of a vLLM server. */
export interface ServerAddress {
  /** The base URL, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string | undefined;
}

/** The name under which vLLM serves the model. */
export const servedName = "arcana";

export function headersFor({ apiKey }: ServerAddress): Record<string, string> {
  return { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) };
}
