// Checks whether a PostgreSQL server responds on a Unix socket, with one connection, one query and a short timeout.
import pg from 'pg';

export interface SocketAddress {
  readonly socketFolder: string;
  readonly port: number;
}

const RESPONSE_TIMEOUT_MS = 2_000;

export const socketLogin = (address: SocketAddress) => ({
  host: address.socketFolder,
  port: address.port,
  user: 'postgres',
  database: 'postgres',
});

export async function isResponding(address: SocketAddress): Promise<boolean> {
  const client = new pg.Client({
    ...socketLogin(address),
    connectionTimeoutMillis: RESPONSE_TIMEOUT_MS,
    query_timeout: RESPONSE_TIMEOUT_MS,
    application_name: 'berth-probe',
  });
  // An error after the response does not matter, but without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
