/** Why model files could not be fetched, as a sentence for whoever wrote the source. Never holds credentials or a URL's query. */
export class FetchFailure extends Error {
  override readonly name = "FetchFailure";
}

/** The URL as it may be shown: signed ones carry their secret in the query. */
export function redactUrl(url: string | URL): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
