/**
 * Returns a function that reports an error only if it differs from the previous one. `undefined` reports the
 * end of the error.
 */
export function reportChanges(report: (error: Error | undefined) => void): typeof report {
  let lastMessage: string | undefined;
  return (error) => {
    if (error?.message !== lastMessage) report(error);
    lastMessage = error?.message;
  };
}
