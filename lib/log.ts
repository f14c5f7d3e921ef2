/** The part of a logger that we use; pino satisfies it. Never log spoken text, keys or tokens. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}
