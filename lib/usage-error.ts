/** A mistake in how a command was started; told as one sentence, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
