import { Worker } from "node:worker_threads";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { DatabaseError } from "../backend/backend.ts";
import type { Answer } from "./protocol.ts";

/** Creates a Kysely dialect for Node's built-in SQLite. All statements run in one worker thread. */
export function workerSqliteDialect(path: string): Dialect {
  return {
    createDriver: () => new WorkerDriver(path),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new TransactionalAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

/**
 * Declares that SQLite allows schema changes in transactions, which Kysely's own adapter does not declare.
 */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class WorkerDriver implements Driver {
  readonly #connection: WorkerConnection;

  constructor(path: string) {
    this.#connection = new WorkerConnection(path);
  }

  async init(): Promise<void> {
    // The first statement opens the file.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection;
  }

  /**
   * Begins a transaction and locks the file immediately. A transaction that locks the file at its first write
   * would fail if another process wrote after the transaction's first read.
   */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw("rollback"));
    } catch (error) {
      // After some errors, such as a full disk, SQLite has already ended the transaction. Only the first
      // error is reported.
      if (!(error instanceof DatabaseError && error.message.includes("no transaction is active")))
        throw error;
    }
  }

  async releaseConnection(): Promise<void> {
    // The dialect has one connection. Kysely gives the connection to one caller at a time.
  }

  async destroy(): Promise<void> {
    await this.#connection.close();
  }
}

interface Pending {
  resolve(result: QueryResult<never>): void;
  reject(error: Error): void;
}

class WorkerConnection implements DatabaseConnection {
  readonly #path: string;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #lastId = 0;

  constructor(path: string) {
    this.#path = path;
  }

  executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      this.#pending.set(id, { resolve, reject });
      this.#worker ??= this.#start();
      this.#worker.postMessage({ id, sql, parameters });
    });
  }

  // biome-ignore lint/correctness/useYield: the interface requires a generator, and this dialect streams no rows
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error("the SQLite database does not support streams of rows");
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: { path: this.#path } });
    worker.unref();
    worker.on("message", (answer: Answer) => this.#settle(answer));
    const fail = (error: Error) => {
      if (this.#worker === worker) this.#fail(error); // The error of a replaced worker is ignored.
    };
    worker.on("error", fail);
    worker.on("exit", () => fail(new Error("the worker thread of the database ended unexpectedly")));
    return worker;
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if ("failure" in answer) pending?.reject(new DatabaseError(answer.failure));
    else pending?.resolve({ rows: answer.rows as never[], numAffectedRows: BigInt(answer.changes) });
  }

  #fail(error: Error): void {
    this.#worker = undefined;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
