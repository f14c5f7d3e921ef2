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

/** A Kysely dialect for Node's own SQLite. Each statement runs in a worker thread. */
export function workerSqliteDialect(path: string): Dialect {
  return {
    createDriver: () => new WorkerDriver(path),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new TransactionalAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

/** SQLite allows schema changes in transactions. Kysely's own adapter does not use this. */
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
   * Takes the lock immediately: a transaction that read first could not write after another process wrote.
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
      // After some errors, such as a full disk, SQLite has already ended the transaction. That first error is
      // the one to report.
      if (!(error instanceof DatabaseError && error.message.includes("no transaction is active")))
        throw error;
    }
  }

  async releaseConnection(): Promise<void> {
    // The dialect has one connection, and Kysely gives it to one user at a time.
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

  // biome-ignore lint/correctness/useYield: part of the interface; nothing here streams rows
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error("this database does not stream rows");
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
      if (this.#worker === worker) this.#fail(error); // Otherwise another worker has replaced it, and continues.
    };
    worker.on("error", fail);
    worker.on("exit", () => fail(new Error("the thread of the database ended")));
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
