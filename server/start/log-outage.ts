import type { Log } from "../../lib/log.ts";

interface Operation {
  /** The name of the data, which is the subject of the log message. */
  readonly subject: string;
  /** The operation, as a participle, such as `read from the database`. */
  readonly operation: string;
  /** The behaviour of the server while the operation fails. */
  readonly meanwhile: string;
}

/**
 * Returns a function that logs the start and the end of an outage. The caller passes the error once when the
 * operation starts to fail, and `undefined` once when the operation works again.
 */
export function logOutage(
  log: Log,
  { subject, operation, meanwhile }: Operation,
  fields: object = {},
): (error: Error | undefined) => void {
  return (error) => {
    if (error) log.error({ err: error, ...fields }, `${subject} cannot be ${operation}; ${meanwhile}`);
    else log.info(fields, `${subject} can be ${operation} again`);
  };
}
