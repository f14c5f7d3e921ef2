import { randomBytes } from "node:crypto";
import { RestartBackoff } from "../../../../lib/backoff.ts";
import { sleep, systemClock } from "../../../../lib/clock.ts";
import type { EngineLog } from "../../runtime/engine.ts";
import { headersFor, type ServerAddress } from "./server-address.ts";
import { freePort, type VllmCommand, VllmProcess } from "./vllm-process.ts";

/** The vLLM server of the generator: a child process or a server at a URL. */
export interface GeneratorServer {
  /** Undefined while it is not reachable. */
  address(): ServerAddress | undefined;
  /** Called after a response, so that no health check is needed. */
  heard(): void;
  readonly restarts: number;
  /** Whether it works, or restarts within its budget. */
  healthy(): boolean;
  close(): Promise<void>;
}

/** Proves that it writes a token, which is more than a successful health check. */
export type Proof = (address: ServerAddress, signal: AbortSignal) => Promise<boolean>;

export interface HealthCheckOptions {
  readonly proof: Proof;
  readonly log: EngineLog;
  /** Milliseconds between two checks. */
  readonly lookMs: number;
  /** Longest duration of a proof in milliseconds. A slower server counts as hung. */
  readonly proofMs: number;
  /** Longest duration of a start in milliseconds. */
  readonly startMs: number;
}

const backoff = { firstMs: 1_000, mostMs: 60_000, provenAfterMs: 60_000 };
/** Failed starts before the first success that end the attempts, because the cause is permanent. */
const mostFirstStarts = 3;

/** Only this machine reaches it, because its API key protects only some of its paths. */
const loopback = "127.0.0.1";

export interface SupervisedOptions extends HealthCheckOptions {
  readonly program: string;
  /** Arguments for the model. The address is added. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Port of the loopback address. A free one if undefined. */
  readonly port: number | undefined;
  /** Random if undefined. */
  readonly apiKey: string | undefined;
}

/** A vLLM that this server starts, and restarts when it ends or hangs. */
export class SupervisedServer implements GeneratorServer {
  readonly #options: SupervisedOptions;
  /** Other processes of this machine may reach its port, so it needs an API key. */
  readonly #apiKey: string;
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #process: VllmProcess | undefined;
  #address: ServerAddress | undefined;
  #running: Promise<void> = Promise.resolve();
  #starts = 0;
  readonly #backoff = new RestartBackoff(backoff);
  #heardAt = 0;
  #awaySince: number | undefined;

  private constructor(options: SupervisedOptions) {
    this.#options = options;
    this.#apiKey = options.apiKey ?? randomBytes(24).toString("base64url");
  }

  /**
   * Resolves when the server has returned a token.
   * @throws Error if three starts failed.
   */
  static async open(options: SupervisedOptions): Promise<SupervisedServer> {
    const server = new SupervisedServer(options);
    server.#running = server.#keepRunning();
    try {
      await server.#first.promise;
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /** ID of its process, with which a test ends it. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  address(): ServerAddress | undefined {
    return this.#address;
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  healthy(): boolean {
    return this.#awaySince === undefined || performance.now() - this.#awaySince < 2 * this.#options.startMs;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #keepRunning(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const startedAt = performance.now();
      const reason = await this.#runOnce().catch(
        (error: unknown) => `it cannot be started: ${String(error)}`,
      );
      if (this.#closing.signal.aborted) return;
      this.#awaySince ??= performance.now();
      const livedMs = Math.round(performance.now() - startedAt);
      this.#options.log.warn({ reason, livedMs }, "vLLM is not running");
      this.#backoff.ended(livedMs);
      const waitMs = this.#backoff.nextMs();
      if (this.#backoff.failures >= mostFirstStarts) {
        this.#first.reject(new Error(`vLLM does not start: ${reason}. Its output is in the log.`));
      }
      await sleep(systemClock, waitMs, this.#closing.signal);
    }
  }

  /** @returns the reason of its end. */
  async #runOnce(): Promise<string> {
    const port = this.#options.port ?? (await freePort());
    const process = new VllmProcess(this.#command(port), this.#options.log);
    this.#process = process;
    this.#starts++;
    const over = new AbortController();
    const ended = process.ended.then((reason) => {
      over.abort();
      return reason;
    });
    const address = { url: `http://${loopback}:${port}`, apiKey: this.#apiKey };
    const signal = AbortSignal.any([over.signal, this.#closing.signal]);
    const watched = this.#watch(address, signal);
    const reason = await Promise.race([ended, watched]);
    this.#address = undefined;
    if (this.#closing.signal.aborted) await process.stop();
    else process.kill();
    await ended;
    over.abort();
    await watched;
    return reason;
  }

  /** @returns the problem, or that it was stopped. */
  async #watch(address: ServerAddress, signal: AbortSignal): Promise<string> {
    const { lookMs, log, startMs } = this.#options;
    const startedAt = performance.now();
    while (!(await this.#proves(address, signal))) {
      if (signal.aborted) return "it was left";
      if (performance.now() - startedAt > startMs)
        return `it was not ready after ${Math.round(startMs / 1000)} s`;
      await sleep(systemClock, Math.min(250, lookMs), signal);
    }
    log.info({ url: address.url, afterMs: Math.round(performance.now() - startedAt) }, "vLLM writes");
    this.#address = address;
    this.#awaySince = undefined;
    this.#first.resolve();
    while (!signal.aborted) {
      await sleep(systemClock, lookMs, signal);
      const isHeard = performance.now() - this.#heardAt < lookMs;
      if (!isHeard && !signal.aborted && !(await this.#proves(address, signal)) && !signal.aborted) {
        return "it hangs: it wrote no token when asked for one";
      }
    }
    return "it was left";
  }

  async #proves(address: ServerAddress, signal: AbortSignal): Promise<boolean> {
    const { proof, proofMs } = this.#options;
    return proves(address, proof, AbortSignal.any([signal, AbortSignal.timeout(proofMs)]));
  }

  #command(port: number): VllmCommand {
    const { program, args, environment } = this.#options;
    return {
      program,
      args: [...args, "--host", loopback, "--port", String(port)],
      environment: { ...environment, VLLM_API_KEY: this.#apiKey },
    };
  }
}

/** A vLLM that another party runs. */
export class ConnectedServer implements GeneratorServer {
  readonly restarts = 0;
  readonly #known: ServerAddress;
  readonly #options: HealthCheckOptions;
  readonly #closing = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  #isUp = true;
  #heardAt = 0;

  private constructor(known: ServerAddress, options: HealthCheckOptions) {
    this.#known = known;
    this.#options = options;
  }

  /**
   * Resolves when the server has returned a token.
   * @throws Error if it returns none within `startMs`.
   */
  static async open(known: ServerAddress, options: HealthCheckOptions): Promise<ConnectedServer> {
    const server = new ConnectedServer(known, options);
    const endsAt = performance.now() + options.startMs;
    while (!(await server.#proves())) {
      if (performance.now() > endsAt) {
        const seconds = Math.round(options.startMs / 1000);
        throw new Error(`vLLM at ${known.url} returned no token within ${seconds} seconds. Check its log.`);
      }
      await sleep(systemClock, 250, server.#closing.signal);
    }
    server.#watching = server.#watch();
    return server;
  }

  address(): ServerAddress | undefined {
    return this.#isUp ? this.#known : undefined;
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  /** This server cannot restart it. */
  healthy(): boolean {
    return true;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { lookMs, log } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(systemClock, lookMs, signal);
      if (performance.now() - this.#heardAt < lookMs || signal.aborted) continue;
      const isUp = await this.#proves();
      if (isUp !== this.#isUp && !signal.aborted) {
        this.#isUp = isUp;
        if (isUp) log.info({ url: this.#known.url }, "vLLM responds again");
        else log.warn({ url: this.#known.url }, "vLLM does not respond");
      }
    }
  }

  #proves(): Promise<boolean> {
    const { proof, proofMs } = this.#options;
    return proves(this.#known, proof, AbortSignal.any([this.#closing.signal, AbortSignal.timeout(proofMs)]));
  }
}

async function proves(address: ServerAddress, proof: Proof, signal: AbortSignal): Promise<boolean> {
  try {
    const health = await fetch(`${address.url}/health`, { headers: headersFor(address), signal });
    await health.body?.cancel();
    return health.ok && (await proof(address, signal));
  } catch {
    return false; // The check is repeated.
  }
}
