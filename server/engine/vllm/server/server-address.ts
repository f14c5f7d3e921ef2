/** Address and API key of a vLLM. */
export interface ServerAddress {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
}

/** The name under which vLLM serves the model. */
export const servedName = "arcana";

export function headersFor({ apiKey }: ServerAddress): Record<string, string> {
  return { "content-type": "application/json", ...(apiKey && { authorization: `Bearer ${apiKey}` }) };
}
