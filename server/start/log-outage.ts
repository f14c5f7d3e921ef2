import type { Log } from "../../lib/log.ts";

interface Operation {
  /** The data, as the subject of a sentence. */
  readonly subject: string;
  /** The operation as a participle with its place, such as `read from the database`. */
  readonly operation: string;
  /** The behaviour of the server while the operation fails. */
  readonly meanwhile: string;
}

/**
 * Returns a function that logs the two transitions of an operation: it fails (an error), and it works again
 * (undefined). The caller reports each transition once.
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
