/**
 * The reason why model files could not be fetched, as a sentence for the author of the source. It never
 * contains credentials or a URL's query.
 */
export class FetchFailure extends Error {
  override readonly name = "FetchFailure";
}

/** The URL for messages: the query of a signed URL contains its secret. */
export function redactUrl(url: string | URL): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
