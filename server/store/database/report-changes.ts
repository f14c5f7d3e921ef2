/**
 * Returns a function that reports an error only if the error differs from the previous error. `undefined`
 * reports the end of the error.
 */
export function reportChanges(report: (error: Error | undefined) => void): typeof report {
  let lastMessage: string | undefined;
  return (error) => {
    if (error?.message !== lastMessage) report(error);
    lastMessage = error?.message;
  };
}
