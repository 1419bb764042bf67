// A bounded pool of connections, with Kysely on top. A connection in an unknown state is never reused. Errors of the
// connection itself become `database_unreachable`; errors about a statement are not changed.
import {
  CamelCasePlugin,
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  sql,
  type TransactionSettings,
} from 'kysely';
import pg from 'pg';
import { Fault, reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Secret } from '../../kit/secret.ts';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import { type SocketAddress, socketLogin } from './embedded/is-responding.ts';
import type { Tables } from './schema.ts';

export type Db = Kysely<Tables>;

/** Runs the work in the open transaction, or in a new one. */
export const inTransaction = <T>(db: Db, work: (trx: Db) => Promise<T>): Promise<T> =>
  db.isTransaction ? work(db) : db.transaction().execute(work);

/**
 * A comment in the text of a statement. It makes each connection parse the statement once and keep its plan. Use it
 * only for statements whose text is constant and names the columns, because a migration by another host may add
 * columns.
 */
export const KEPT_PLAN_MARK = '/* kept plan */';
/** The comment as SQL, for the query builder. */
export const KEPT_PLAN = sql.raw<never>(KEPT_PLAN_MARK);

export type Target = { readonly url: Secret } | { readonly socket: SocketAddress };

export interface Database extends Closeable {
  readonly db: Db;
}

/**
 * Maximum number of connections. More connections would only wait inside PostgreSQL, and each takes up a few megabytes
 * there.
 */
const POOL_MAX = 8;
const IDLE_CONNECTION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/**
 * Time limit for the wait for a free connection. It is longer than the limit of a statement, because the wait may be
 * for a statement to finish.
 */
const FREE_CONNECTION_TIMEOUT_MS = 20_000;
/** The database cancels a statement after STATEMENT_TIMEOUT_MS. This limit applies if the database fails to do so. */
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 3_000;
const CLOSE_TIMEOUT_MS = 5_000;

export interface DatabaseOptions {
  readonly poolMax?: number;
  /** The time limit for each statement. 0: no limit. */
  readonly statementMs?: number;
  /** The role that the connections use, if it is not the login itself. */
  readonly role?: string;
}

export function openDatabase(target: Target, log: Log, options: DatabaseOptions = {}): Database {
  const statementTimeoutMs = options.statementMs ?? STATEMENT_TIMEOUT_MS;
  const { role } = options;
  const clientConfig: pg.ClientConfig = {
    ...connectionConfig(target),
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    ...(statementTimeoutMs > 0 ? { query_timeout: QUERY_TIMEOUT_MS } : {}),
  };
  const pool = new pg.Pool({
    Client: clientClassWith(clientConfig),
    ...(role === undefined ? {} : { onConnect: client => setRole(client, role) }),
    max: options.poolMax ?? POOL_MAX,
    idleTimeoutMillis: IDLE_CONNECTION_TIMEOUT_MS,
    connectionTimeoutMillis: FREE_CONNECTION_TIMEOUT_MS,
  });
  // An idle connection that breaks is dropped from the pool; without listeners its error would end the process.
  pool.on('error', error => log.debug('database.connection_lost', { reason: reason(error) }));
  pool.on('connect', client => client.on('error', () => {}));
  const db = new Kysely<Tables>({
    dialect: {
      createDriver: () => new PoolDriver(pool),
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: inner => new PostgresIntrospector(inner),
    },
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  });
  return { db, close: () => closeWithTimeout(db, log) };
}

/**
 * Gives new connections a separate time limit, because the time limit of the pool also applies to the wait for a free
 * connection.
 */
const clientClassWith = (clientConfig: pg.ClientConfig): (new () => pg.Client) =>
  class extends pg.Client {
    constructor() {
      super(clientConfig);
    }
  };

/** The settings common to all connections, including the listener's. */
export function connectionConfig(target: Target): pg.ClientConfig {
  return {
    ...('url' in target ? { connectionString: target.url.reveal() } : socketLogin(target.socket)),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'berth',
    types: { getTypeParser },
  };
}

export const setRole = async (client: pg.ClientBase, role: string): Promise<void> =>
  void (await client.query(`set role ${pg.escapeIdentifier(role)}`));

const INT8 = 20;

/** No int8 value that Berth stores exceeds 2^53 - 1, so a JavaScript number represents each of them exactly. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number) =>
  oid === INT8 ? Number : pg.types.getTypeParser(oid, 'text');

/** Closes the pool. A hanging query may hold its connection until the database is shut down or this process ends. */
async function closeWithTimeout(db: Db, log: Log): Promise<void> {
  try {
    await withTimeout(CLOSE_TIMEOUT_MS, 'the last queries', () => db.destroy());
  } catch (error) {
    if (!(error instanceof WaitExpired)) throw error;
    log.warn('database.close_unfinished', { reason: error.message });
  }
}

class PoolDriver implements Driver {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<PoolConnection> {
    try {
      return new PoolConnection(await this.#pool.connect());
    } catch (error) {
      throw unreachableFault(
        isPoolFull(error) ? new Error('all connections of this process are in use', { cause: error }) : error,
      );
    }
  }

  async beginTransaction(poolConnection: PoolConnection, settings: TransactionSettings): Promise<void> {
    const level = settings.isolationLevel ? ` isolation level ${settings.isolationLevel}` : '';
    await poolConnection.send(`begin${level}${settings.accessMode ? ` ${settings.accessMode}` : ''}`);
  }

  /** PostgreSQL responds to COMMIT with ROLLBACK if a statement of the transaction has failed. */
  async commitTransaction(poolConnection: PoolConnection): Promise<void> {
    const { command } = await poolConnection.send('commit');
    if (command !== 'COMMIT')
      throw new Error('the transaction was rolled back instead of committed, because one of its statements had failed');
  }

  async rollbackTransaction(poolConnection: PoolConnection): Promise<void> {
    try {
      await poolConnection.send('rollback');
    } catch (error) {
      poolConnection.discard();
      throw error;
    }
  }

  async releaseConnection(poolConnection: PoolConnection): Promise<void> {
    poolConnection.release();
  }

  async destroy(): Promise<void> {
    await this.#pool.end();
  }
}

/**
 * Whether the error means that no connection of the pool became free within `FREE_CONNECTION_TIMEOUT_MS`. This error
 * has no code, so its message is compared.
 */
const isPoolFull = (error: unknown): boolean => reason(error) === 'timeout exceeded when trying to connect';

class PoolConnection implements DatabaseConnection {
  readonly #client: pg.PoolClient;
  #isBroken = false;

  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const result = await this.send(query.sql, [...query.parameters], statementNameOf(query.sql));
    return { rows: result.rows, numAffectedRows: BigInt(result.rowCount ?? 0) };
  }

  async send(text: string, values: unknown[] = [], name?: string): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(name === undefined ? { text, values } : { name, text, values });
    } catch (error) {
      if (isStatementError(error)) throw error;
      this.discard();
      throw unreachableFault(error);
    }
  }

  async *streamQuery<R>(): AsyncGenerator<QueryResult<R>> {
    throw new Error('streaming queries are not supported');
  }

  discard(): void {
    this.#isBroken = true;
  }

  release(): void {
    this.#client.release(this.#isBroken);
  }
}

const statementNames = new Map<string, string>();

function statementNameOf(text: string): string | undefined {
  if (!text.includes(KEPT_PLAN_MARK)) return undefined;
  const name = statementNames.get(text) ?? `kept_${statementNames.size}`;
  statementNames.set(text, name);
  return name;
}

/**
 * SQLSTATE codes for shutdown, crash, startup, a dropped database, an idle session, too many connections and connection
 * failure. Errors with these codes are not about the statement.
 */
const SERVER_FAILURE_CODES = /^(57P0[1-5]|53300|08...)$/;

/** Whether the database responded, and the error is about the statement. */
const isStatementError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !SERVER_FAILURE_CODES.test(error.code ?? '');

/**
 * Returns the reason for an error, or its code if it has no message. A refused connection to a host name with several
 * addresses gives such an error.
 */
export const describeProblem = (error: unknown): string =>
  reason(error) || (error instanceof Error && 'code' in error ? String(error.code) : 'no reason given');

export const unreachableFault = (error: unknown): Fault =>
  new Fault('database_unreachable', `The database is unavailable: ${describeProblem(error)}.`, {
    advice: 'Try again in a few seconds.',
    cause: error,
  });
