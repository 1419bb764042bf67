// `berth keys` with --app: manages the agent keys of one of the logged-in account's applications, over HTTP. Without
// --app, see keys.ts.
import { AGENT_KEY_SCOPES, type AgentKeyScope } from '../../contract/agent-keys.ts';
import { dataOf, paginate } from '../../sdk/index.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { type Connection, type HttpOptions, overHttp } from '../http/connection.ts';
import { type Profile, writeProfile } from '../http/profiles.ts';
import { printJson, type Terminal } from '../terminal.ts';
import { printCredentials } from './credential-list.ts';
import type { CreateKeyOptions } from './keys.ts';

export interface AppOptions extends HttpOptions {
  readonly app: string;
}

export interface CreateAppKeyOptions extends AppOptions, Omit<CreateKeyOptions, 'application' | 'json'> {
  readonly save?: true;
}

export const createAppKey = (terminal: Terminal, options: CreateAppKeyOptions): Promise<void> =>
  overHttp(terminal, options, async connection => {
    const profile = options.save ? requireLoggedInProfile(connection) : undefined;
    const createdKey = await dataOf(
      connection.berth.POST('/v1/applications/{appId}/agent-keys', {
        params: { path: { appId: options.app } },
        body: {
          name: options.name,
          ...(options.scope ? { scopes: options.scope.map(scopeOf) } : {}),
          ...(options.expires ? { expiresAt: options.expires.toISOString() } : {}),
        },
      }),
    );
    const { id, applicationId, key } = createdKey;
    if (key === undefined)
      throw new CommandFailed(
        EXIT.failed,
        `Key ${id} was created, but the response does not contain the key itself. Revoke this key with \`berth keys revoke\`, and create another key.`,
      );
    if (profile) writeProfile(terminal, connection.profileName, { ...profile, key: { id, applicationId, value: key } });
    if (options.json) return printJson(terminal, { id, applicationId, ...(profile ? { saved: true } : { key }) });
    if (profile) return terminal.say(savedText(id, connection));
    terminal.say(`Created agent key ${id} for application ${applicationId}. It is shown only once:\n`);
    terminal.print(`${key}\n`);
  });

function scopeOf(scopeName: string): AgentKeyScope {
  const scope = AGENT_KEY_SCOPES.find(known => known === scopeName);
  if (scope) return scope;
  throw new CommandFailed(EXIT.usage, `Unknown scope: ${scopeName}. The scopes are: ${AGENT_KEY_SCOPES.join(', ')}`);
}

function requireLoggedInProfile({ profile, profileName, server }: Connection): Profile {
  if (profile?.token) return profile;
  throw new CommandFailed(
    EXIT.usage,
    `--save stores the key in a profile, but profile ${profileName} is not logged in to ${server}. Run \`berth login\` first.`,
  );
}

function savedText(id: string, { profile, profileName }: Connection): string {
  const savedSentence = `Agent key ${id} is saved in profile ${profileName} for use with \`berth sessions\`.\n`;
  if (!profile?.key) return savedSentence;
  const { id: previousId, applicationId } = profile.key;
  return `${savedSentence}The previously saved key stays valid. To revoke it: berth keys revoke ${previousId} --app ${applicationId}\n`;
}

export const listAppKeys = (terminal: Terminal, options: AppOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const path = { appId: options.app };
    const pagedItems = paginate(cursor =>
      berth.GET('/v1/applications/{appId}/agent-keys', { params: { path, query: cursor ? { cursor } : {} } }),
    );
    const keys = await Array.fromAsync(pagedItems);
    if (options.json) return printJson(terminal, keys);
    printCredentials(terminal, keys);
  });

export const revokeAppKey = (terminal: Terminal, keyId: string, options: AppOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const path = { appId: options.app, keyId };
    await berth.DELETE('/v1/applications/{appId}/agent-keys/{keyId}', { params: { path } });
    if (options.json) return printJson(terminal, { id: keyId, applicationId: options.app, revoked: true });
    terminal.say(`Agent key ${keyId} has been revoked.\n`);
  });
