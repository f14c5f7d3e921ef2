/** Reports a problem once: when it begins, when it changes, and when it has ended (undefined). */
export function reportChanges(tell: (error: Error | undefined) => void): typeof tell {
  let known: string | undefined;
  return (error) => {
    if (error?.message !== known) tell(error);
    known = error?.message;
  };
}
