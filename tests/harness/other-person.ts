// People other than the owner, and queries that a test sends to the embedded database of a running server.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import pg from 'pg';
import type { SignInResult } from '../../contract/sign-in.ts';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { PASSWORD, Person } from './person.ts';
import type { TestServer } from './server.ts';

/**
 * Registers a person on a server with `BERTH_REGISTRATION=open`. If a role is given, also makes the
 * person a member of the first application with that role, by inserting the row.
 */
export async function registerOtherPerson(server: TestServer, email: string, role?: string): Promise<Person> {
  const person = new Person(server);
  const fields = { name: email, email, password: PASSWORD };
  const response = await person.post<SignInResult>('/v1/sign-in/register', fields);
  assert.equal(response.status, 200, response.text);
  const memberRow = [server.applicationId, response.body.accountId, role, server.now()];
  if (role !== undefined)
    await queryRows(
      server,
      'insert into members (application_id, account_id, role, created_at) values ($1, $2, $3, $4)',
      memberRow,
    );
  return person;
}

/**
 * Returns all rows of these tables as text. The tables are read one after another, because the embedded database has
 * few connections.
 */
export async function readDatabaseText(server: TestServer, tables: readonly string[]): Promise<string> {
  const tableRows: unknown[] = [];
  for (const table of tables) tableRows.push(await queryRows(server, `select ${table}::text from ${table}`));
  return JSON.stringify(tableRows);
}

/** An IPv4 address of this machine other than loopback. */
export const findMachineAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

export async function queryRows(
  server: TestServer,
  query: string,
  values: readonly unknown[] = [],
): Promise<unknown[]> {
  const postmaster =
    findPostmaster(server.dataDir) ??
    assert.fail('the embedded database of the server is not running; start the server first');
  const client = new pg.Client(socketLogin(postmaster));
  await client.connect();
  try {
    return (await client.query(query, [...values])).rows;
  } finally {
    await client.end();
  }
}
