// A relay between a server and its PostgreSQL that records every statement, using the message format of PostgreSQL's
// protocol. It does not support TLS.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

const HEADER_BYTES = 5;
const QUERY_TYPE = 'Q'.charCodeAt(0);
const PARSE_TYPE = 'P'.charCodeAt(0);
const BIND_TYPE = 'B'.charCodeAt(0);

export interface StatementCounter {
  /** The connection string of the server under test. */
  readonly url: string;
  /** Runs the work and returns the statements that were sent during it, including those of background tasks. */
  statementsDuring(work: () => Promise<unknown>): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Starts the relay. `url` is the address of PostgreSQL, with host and port. */
export async function openStatementCounter(url: string): Promise<StatementCounter> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const statements: string[] = [];
  const server = createServer(client => {
    const database = connect({ host: target.hostname, port: Number(target.port) });
    const read = createReader(text => statements.push(text));
    client.on('data', read);
    client.pipe(database);
    database.pipe(client);
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        database.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the statement counter has no port, because its server is not listening');
  const relayUrl = new URL(url);
  relayUrl.host = `127.0.0.1:${address.port}`;
  return {
    url: relayUrl.href,
    statementsDuring: async work => {
      const from = statements.length;
      await work();
      return statements.slice(from);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Parses the messages of a client, which arrive in chunks of any length. */
function createReader(onStatement: (text: string) => void): (chunk: Buffer) => void {
  let unreadBytes = Buffer.alloc(0);
  let hasStarted = false;
  /**
   * The SQL text of each prepared statement, by name. A statement is parsed once, and then bound for each execution.
   */
  const preparedStatements = new Map<string, string>();
  return chunk => {
    unreadBytes = Buffer.concat([unreadBytes, chunk]);
    for (;;) {
      // The first message has no type byte.
      const typeBytes = hasStarted ? 1 : 0;
      if (unreadBytes.length < HEADER_BYTES) return;
      const messageBytes = typeBytes + unreadBytes.readUInt32BE(typeBytes);
      if (unreadBytes.length < messageBytes) return;
      const type = hasStarted ? unreadBytes[0] : undefined;
      const content = unreadBytes.subarray(HEADER_BYTES, messageBytes).toString('latin1');
      unreadBytes = unreadBytes.subarray(messageBytes);
      hasStarted = true;
      // A query message contains the SQL text. A parse message contains the name of the statement and then its SQL
      // text. A bind message contains the name of a portal and then that of the statement.
      const [first = '', second = ''] = content.split('\0', 2);
      if (type === QUERY_TYPE) onStatement(first);
      if (type === PARSE_TYPE) preparedStatements.set(first, second);
      if (type === BIND_TYPE) onStatement(preparedStatements.get(second) ?? '');
    }
  };
}
