// `berth keys`: creates, lists and revokes agent keys, directly in the database.
import { type Local, openLocal } from '../../server/local.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';
import { printCredentials, toListItem } from './credential-list.ts';

export interface CreateKeyOptions {
  readonly application?: string;
  readonly name: string;
  readonly scope?: readonly string[];
  readonly expires?: Date;
  readonly json?: true;
}

export interface ListKeysOptions {
  readonly application?: string;
  readonly json?: true;
}

export function createKey(terminal: Terminal, options: CreateKeyOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const application = await local.getOrCreateApplication(options.application);
    const { row, key } = await local.createKey(application.id, {
      name: options.name,
      ...(options.scope ? { scopes: options.scope } : {}),
      ...(options.expires ? { expiresAt: options.expires } : {}),
    });
    if (options.json) return printJson(terminal, { id: row.id, applicationId: application.id, key: key.reveal() });
    terminal.say(
      `Created agent key ${row.id} for application ${application.name} (${application.id}). It is shown only once:\n`,
    );
    terminal.print(`${key.reveal()}\n`);
  });
}

export function listKeys(terminal: Terminal, options: ListKeysOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const application = await local.application(options.application);
    const rows = await local.listKeys(application.id);
    const now = new Date();
    const keys = rows.map(row => ({ ...toListItem(row, now), applicationId: row.applicationId }));
    if (options.json) return printJson(terminal, keys);
    printCredentials(terminal, keys);
  });
}

export function revokeKey(terminal: Terminal, id: string, options: ListKeysOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const application = await local.application(options.application);
    await local.revokeKey(application.id, id);
    if (options.json) return printJson(terminal, { id, applicationId: application.id, revoked: true });
    terminal.say(`Agent key ${id} has been revoked.\n`);
  });
}

/** Opens the data folder for `work`, and closes it afterwards. Maps faults to exit codes. */
export async function withLocal(terminal: Terminal, work: (local: Local) => Promise<void>): Promise<void> {
  const local = await openLocal(terminal.env);
  try {
    await work(local);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'not_found')
      throw new CommandFailed(EXIT.notFound, error.message);
    if (error instanceof Error && 'code' in error && error.code === 'invalid_request')
      throw new CommandFailed(EXIT.usage, error.message);
    throw error;
  } finally {
    await local.close();
  }
}
