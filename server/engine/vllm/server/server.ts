import { randomBytes } from "node:crypto";
import { RestartBackoff } from "../../../../lib/backoff.ts";
import { sleep, systemClock } from "../../../../lib/clock.ts";
import type { EngineLog } from "../../runtime/engine.ts";
import { headersFor, type ServerAddress } from "./server-address.ts";
import { freePort, type VllmCommand, VllmProcess } from "./vllm-process.ts";

/** The vLLM server of the generator: a child process, or a server at a URL. */
export interface GeneratorServer {
  /** Returns the address of vLLM, or undefined while vLLM is not reachable. */
  address(): ServerAddress | undefined;
  /** Records that vLLM has sent a response. A health check is then not necessary. */
  heard(): void;
  readonly restarts: number;
  /** Returns whether vLLM works, or restarts within its budget. */
  healthy(): boolean;
  close(): Promise<void>;
}

/**
 * Checks whether vLLM writes a token. A successful health check of vLLM does not prove that vLLM writes
 * tokens.
 */
export type Proof = (address: ServerAddress, signal: AbortSignal) => Promise<boolean>;

export interface HealthCheckOptions {
  readonly proof: Proof;
  readonly log: EngineLog;
  /** The interval of the checks in milliseconds. */
  readonly lookMs: number;
  /** The time limit of a proof in milliseconds. A slower server counts as hung. */
  readonly proofMs: number;
  /** The time limit of a start in milliseconds. */
  readonly startMs: number;
}

const backoff = { firstMs: 1_000, mostMs: 60_000, provenAfterMs: 60_000 };
/**
 * The number of failed first starts after which `open` fails, because the cause is then likely to be
 * permanent.
 */
const mostFirstStarts = 3;

/** vLLM listens on the loopback address only, because its API key protects only some of its paths. */
const loopback = "127.0.0.1";

export interface SupervisedOptions extends HealthCheckOptions {
  readonly program: string;
  /** The arguments for the model, to which the address is added. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** The port on the loopback address. By default, vLLM uses a free port. */
  readonly port: number | undefined;
  /** The API key of vLLM. The default is a random key. */
  readonly apiKey: string | undefined;
}

/** A vLLM server as a child process. This class restarts the server when the server ends or hangs. */
export class SupervisedServer implements GeneratorServer {
  readonly #options: SupervisedOptions;
  /** vLLM requires an API key, because other processes of this machine may reach its port. */
  readonly #apiKey: string;
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #process: VllmProcess | undefined;
  #address: ServerAddress | undefined;
  #running: Promise<void> = Promise.resolve();
  #starts = 0;
  readonly #backoff = new RestartBackoff(backoff);
  #lastResponseAt = 0;
  #unavailableSince: number | undefined;

  private constructor(options: SupervisedOptions) {
    this.#options = options;
    this.#apiKey = options.apiKey ?? randomBytes(24).toString("base64url");
  }

  /**
   * Starts vLLM. Resolves when vLLM has returned a token.
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

  /** The process ID of vLLM. A test uses the ID to end vLLM. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  address(): ServerAddress | undefined {
    return this.#address;
  }

  heard(): void {
    this.#lastResponseAt = performance.now();
  }

  healthy(): boolean {
    return (
      this.#unavailableSince === undefined ||
      performance.now() - this.#unavailableSince < 2 * this.#options.startMs
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #keepRunning(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const startedAt = performance.now();
      const reason = await this.#runOnce().catch(
        (error: unknown) => `vLLM could not be started: ${String(error)}`,
      );
      if (this.#closing.signal.aborted) return;
      this.#unavailableSince ??= performance.now();
      const livedMs = Math.round(performance.now() - startedAt);
      this.#options.log.warn({ reason, livedMs }, "vLLM is not running; it is restarted after a pause");
      this.#backoff.ended(livedMs);
      const waitMs = this.#backoff.nextMs();
      if (this.#backoff.failures >= mostFirstStarts) {
        this.#first.reject(
          new Error(
            `vLLM did not start ${mostFirstStarts} times in a row. Last reason: ${reason}. The log contains the output of vLLM.`,
          ),
        );
      }
      await sleep(systemClock, waitMs, this.#closing.signal);
    }
  }

  /**
   * Runs vLLM once.
   * @returns the reason why vLLM ended.
   */
  async #runOnce(): Promise<string> {
    const port = this.#options.port ?? (await freePort());
    const process = new VllmProcess(this.#command(port), this.#options.log);
    this.#process = process;
    this.#starts++;
    const ending = new AbortController();
    const ended = process.ended.then((reason) => {
      ending.abort();
      return reason;
    });
    const address = { url: `http://${loopback}:${port}`, apiKey: this.#apiKey };
    const signal = AbortSignal.any([ending.signal, this.#closing.signal]);
    const watching = this.#watch(address, signal);
    const reason = await Promise.race([ended, watching]);
    this.#address = undefined;
    if (this.#closing.signal.aborted) await process.stop();
    else process.kill();
    await ended;
    ending.abort();
    await watching;
    return reason;
  }

  /**
   * Checks vLLM periodically.
   * @returns the problem, or the message that vLLM was stopped.
   */
  async #watch(address: ServerAddress, signal: AbortSignal): Promise<string> {
    const { lookMs, log, startMs } = this.#options;
    const startedAt = performance.now();
    while (!(await this.#isProven(address, signal))) {
      if (signal.aborted) return "vLLM was stopped";
      if (performance.now() - startedAt > startMs)
        return `vLLM was not ready after ${Math.round(startMs / 1000)} s`;
      await sleep(systemClock, Math.min(250, lookMs), signal);
    }
    log.info({ url: address.url, afterMs: Math.round(performance.now() - startedAt) }, "vLLM is ready");
    this.#address = address;
    this.#unavailableSince = undefined;
    this.#first.resolve();
    while (!signal.aborted) {
      await sleep(systemClock, lookMs, signal);
      const hasResponded = performance.now() - this.#lastResponseAt < lookMs;
      if (!hasResponded && !signal.aborted && !(await this.#isProven(address, signal)) && !signal.aborted) {
        return "vLLM hangs: it did not return the token that a health check requested";
      }
    }
    return "vLLM was stopped";
  }

  async #isProven(address: ServerAddress, signal: AbortSignal): Promise<boolean> {
    const { proof, proofMs } = this.#options;
    return isProven(address, proof, AbortSignal.any([signal, AbortSignal.timeout(proofMs)]));
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

/** A vLLM server at a URL. The model tier does not start or restart this vLLM server. */
export class ConnectedServer implements GeneratorServer {
  readonly restarts = 0;
  readonly #address: ServerAddress;
  readonly #options: HealthCheckOptions;
  readonly #closing = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  #isUp = true;
  #lastResponseAt = 0;

  private constructor(address: ServerAddress, options: HealthCheckOptions) {
    this.#address = address;
    this.#options = options;
  }

  /**
   * Connects to vLLM. Resolves when vLLM has returned a token.
   * @throws Error if vLLM returns no token within `startMs`.
   */
  static async open(address: ServerAddress, options: HealthCheckOptions): Promise<ConnectedServer> {
    const server = new ConnectedServer(address, options);
    const endsAt = performance.now() + options.startMs;
    while (!(await server.#isProven())) {
      if (performance.now() > endsAt) {
        const seconds = Math.round(options.startMs / 1000);
        throw new Error(
          `vLLM at ${address.url} returned no token within ${seconds} seconds. Check the log of vLLM.`,
        );
      }
      await sleep(systemClock, 250, server.#closing.signal);
    }
    server.#watching = server.#watch();
    return server;
  }

  address(): ServerAddress | undefined {
    return this.#isUp ? this.#address : undefined;
  }

  heard(): void {
    this.#lastResponseAt = performance.now();
  }

  /** Returns true, because a restart of the model tier would not restart vLLM. */
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
      if (performance.now() - this.#lastResponseAt < lookMs || signal.aborted) continue;
      const isUp = await this.#isProven();
      if (isUp !== this.#isUp && !signal.aborted) {
        this.#isUp = isUp;
        if (isUp) log.info({ url: this.#address.url }, "vLLM responds again");
        else log.warn({ url: this.#address.url }, "vLLM does not respond; check its log and the network");
      }
    }
  }

  #isProven(): Promise<boolean> {
    const { proof, proofMs } = this.#options;
    return isProven(
      this.#address,
      proof,
      AbortSignal.any([this.#closing.signal, AbortSignal.timeout(proofMs)]),
    );
  }
}

async function isProven(address: ServerAddress, proof: Proof, signal: AbortSignal): Promise<boolean> {
  try {
    const health = await fetch(`${address.url}/health`, { headers: headersFor(address), signal });
    await health.body?.cancel();
    return health.ok && (await proof(address, signal));
  } catch {
    return false; // The check is repeated later.
  }
}
