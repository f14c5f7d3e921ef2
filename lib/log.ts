/** What parts of the API tier need of a logger; pino, as Fastify brings it, fits. Never given text, keys or tokens. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}
