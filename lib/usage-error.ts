/** An error in the arguments of a command. It is printed as one sentence, without a stack trace. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
