/** An error in the arguments or settings of a command. Its message is printed without a stack trace. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
