// `berth tokens`: creates, lists and revokes personal access tokens, directly in the database.
import type { Local } from '../../server/local.ts';
import { printJson, type Terminal } from '../terminal.ts';
import { printCredentials, toListItem } from './credential-list.ts';
import { withLocal } from './keys.ts';

export interface CreateTokenOptions {
  readonly name: string;
  readonly scope?: readonly string[];
  readonly application?: readonly string[];
  readonly cidr?: readonly string[];
  readonly expires?: Date;
  readonly json?: true;
}

export interface JsonOption {
  readonly json?: true;
}

export function createToken(terminal: Terminal, options: CreateTokenOptions): Promise<void> {
  return withLocal(terminal, async local => {
    const { row, token } = await local.createToken({
      name: options.name,
      ...(options.scope ? { scopes: options.scope } : {}),
      ...(options.expires ? { expiresAt: options.expires } : {}),
      ...(options.cidr ? { cidrAllow: options.cidr } : {}),
      ...(options.application ? { applicationIds: await resolveApplicationIds(local, options.application) } : {}),
    });
    if (options.json) return printJson(terminal, { id: row.id, token: token.reveal() });
    const expiryText = row.expiresAt ? `, valid until ${row.expiresAt.toISOString()}` : '';
    terminal.say(`Created personal access token ${row.id}${expiryText}. It is shown only once:\n`);
    terminal.print(`${token.reveal()}\n`);
  });
}

export function listTokens(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const now = new Date();
    const tokens = (await local.listTokens()).map(row => ({
      ...toListItem(row, now),
      ...(row.applicationIds ? { applicationIds: row.applicationIds } : {}),
    }));
    if (options.json) return printJson(terminal, tokens);
    printCredentials(terminal, tokens);
  });
}

export function revokeToken(terminal: Terminal, id: string, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    await local.revokeToken(id);
    if (options.json) return printJson(terminal, { id, revoked: true });
    terminal.say(`Personal access token ${id} has been revoked.\n`);
  });
}

const resolveApplicationIds = async (local: Local, applications: readonly string[]): Promise<string[]> =>
  (await Promise.all(applications.map(one => local.application(one)))).map(({ id }) => id);
