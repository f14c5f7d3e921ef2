/** The kind of a failure, for programs. Users read the message instead. */
export type FetchProblem = "DigestMismatch" | "DiskFull" | "FetchFailed";

/**
 * The reason why model files could not be fetched, as a message for the author of the source. The message
 * never contains credentials or the query of a URL.
 */
export class FetchFailure extends Error {
  override readonly name = "FetchFailure";
  readonly problem: FetchProblem;

  constructor(message: string, { problem = "FetchFailed", ...options }: FetchFailureOptions = {}) {
    super(message, options);
    this.problem = problem;
  }
}

interface FetchFailureOptions extends ErrorOptions {
  readonly problem?: FetchProblem;
}

/**
 * Returns a URL for messages. The result has no query, because the query of a signed URL contains a secret.
 */
export function redactUrl(url: string | URL): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
