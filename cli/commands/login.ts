// `berth login`, `berth logout`, `berth whoami`: create, remove and show the credentials of a profile.
import { hostname } from 'node:os';
import { type Berth, BerthError, berthClient, dataOf } from '../../sdk/index.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { type CredentialSource, type HttpOptions, overHttp, serverOf } from '../http/connection.ts';
import { runDeviceLogin, type StartedLogin } from '../http/device-login.ts';
import { credentialsFile, PROFILE_DEFAULT, type Profile, readProfile, writeProfile } from '../http/profiles.ts';
import { printJson, type Terminal, table } from '../terminal.ts';

const SECOND_MS = 1_000;
const MINUTE_SECONDS = 60;
/** The scopes that the commands over HTTP need. The person who approves the login may remove some of them. */
const SCOPES = ['applications:read', 'applications:write', 'keys:write'];

export interface LoginOptions extends HttpOptions {
  readonly scope?: readonly string[];
  readonly tokenStdin?: true;
}

export async function login(terminal: Terminal, options: LoginOptions): Promise<void> {
  const profileName = options.profile ?? PROFILE_DEFAULT;
  const previousProfile = readProfile(terminal, profileName);
  const server = serverOf(terminal, options, previousProfile);
  if (previousProfile && previousProfile.server !== server)
    throw new CommandFailed(
      EXIT.usage,
      `Profile ${profileName} is already logged in to ${previousProfile.server}. Log out first, or use another profile with --profile.`,
    );
  if (isUnencryptedRemote(server))
    terminal.say(`Warning: the connection to ${server} is not encrypted. Others may read your credentials.\n`);
  await overHttp(terminal, { server }, async ({ berth }) => {
    const token = options.tokenStdin
      ? await readTokenFromInput(terminal, server)
      : await requestToken(terminal, berth, options.scope ?? SCOPES);
    writeProfile(terminal, profileName, { ...previousProfile, server, token });
    if (previousProfile?.token?.isOwn) await revokeReplacedToken(server, previousProfile.token);
    const expiresAt = token.expiresAt ? { expiresAt: token.expiresAt } : {};
    if (options.json) return printJson(terminal, { profile: profileName, server, tokenId: token.id, ...expiresAt });
    terminal.say(
      `Logged in to ${server}${token.expiresAt ? ` until ${token.expiresAt}` : ''}. The token is saved in ${credentialsFile(terminal)}.\n`,
    );
    if (!previousProfile?.key)
      terminal.say('For `berth sessions`, create an agent key: berth keys create --app ID --save\n');
  });
}

function isUnencryptedRemote(server: string): boolean {
  const { protocol, hostname } = new URL(server);
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

async function requestToken(terminal: Terminal, berth: Berth, scopes: readonly string[]): Promise<ProfileToken> {
  const { USER } = terminal.env;
  const deviceName = USER ? `${USER}@${hostname()}` : hostname();
  const grantedToken = await runDeviceLogin(berth, { scopes, deviceName }, startedLogin =>
    terminal.say(approvalPrompt(startedLogin)),
  );
  return {
    id: grantedToken.token_id,
    value: grantedToken.access_token,
    isOwn: true,
    expiresAt: new Date(Date.now() + grantedToken.expires_in * SECOND_MS).toISOString(),
  };
}

type ProfileToken = NonNullable<Profile['token']>;

const approvalPrompt = (startedLogin: StartedLogin): string =>
  [
    'Open this address in a browser, and check that it shows the same code:\n',
    `  ${startedLogin.verification_uri_complete}`,
    `  ${startedLogin.user_code}\n`,
    `Waiting for approval, for up to ${Math.round(startedLogin.expires_in / MINUTE_SECONDS)} minutes ...\n`,
  ].join('\n');

async function readTokenFromInput(terminal: Terminal, server: string): Promise<ProfileToken> {
  const value = (await terminal.input()).trim();
  if (value === '')
    throw new CommandFailed(EXIT.usage, 'Standard input is empty. Pass a personal access token on standard input.');
  const token = await dataOf(berthClient({ url: server, key: '', token: value }).GET('/v1/account/tokens/current'));
  return { id: token.id, value, isOwn: false, ...(token.expiresAt ? { expiresAt: token.expiresAt } : {}) };
}

export async function logout(terminal: Terminal, options: Omit<HttpOptions, 'server'>): Promise<void> {
  const name = options.profile ?? PROFILE_DEFAULT;
  const profile = readProfile(terminal, name);
  if (!profile)
    throw new CommandFailed(EXIT.notFound, `There is no profile ${name}. Name another profile with --profile.`);
  const revokedIds = await revokeLoginCredentials(terminal, profile);
  writeProfile(terminal, name, undefined);
  if (options.json) return printJson(terminal, { profile: name, server: profile.server, revoked: revokedIds });
  terminal.say(`Logged out of ${profile.server}.\n`);
}

/**
 * Revokes the credentials that `login` and `keys create --save` made. The profile is removed even if the revocation
 * fails.
 */
async function revokeLoginCredentials(terminal: Terminal, { server, key, token }: Profile): Promise<string[]> {
  if (!token) return [];
  const berth = berthClient({ url: server, key: '', token: token.value });
  const revokedIds: string[] = [];
  const revoke = async (id: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      revokedIds.push(id);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      terminal.say(`Could not revoke ${id}: ${error.message}\n`);
    }
  };
  if (key) {
    const path = { appId: key.applicationId, keyId: key.id };
    await revoke(key.id, () => berth.DELETE('/v1/applications/{appId}/agent-keys/{keyId}', { params: { path } }));
  }
  if (token.isOwn) await revoke(token.id, () => revokeToken(server, token));
  return revokedIds;
}

/**
 * Revokes the token of an earlier login. A failure is ignored: the token has already expired, or will expire within
 * hours.
 */
async function revokeReplacedToken(server: string, token: ProfileToken): Promise<void> {
  await revokeToken(server, token).catch((error: unknown) => {
    if (!(error instanceof BerthError)) throw error;
  });
}

/** A token may always revoke itself. */
async function revokeToken(server: string, { id, value }: ProfileToken): Promise<void> {
  const berth = berthClient({ url: server, key: '', token: value });
  await berth.DELETE('/v1/account/tokens/{id}', { params: { path: { id } } });
}

/** What `whoami` shows about a key that is not saved in the profile. */
const UNSAVED_KEY_TEXTS: Readonly<Record<CredentialSource, string>> = {
  environment: 'the one in BERTH_KEY',
  option: 'the one of --key',
  profile: 'none',
  none: 'none',
};

export const whoami = (terminal: Terminal, options: HttpOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth, server, profileName, profile, sources }) => {
    const { id, name, kind, scopes, applicationIds, expiresAt } = await dataOf(berth.GET('/v1/account/tokens/current'));
    const savedKey = sources.key === 'profile' ? profile?.key : undefined;
    const key = savedKey && { id: savedKey.id, applicationId: savedKey.applicationId };
    const token = { id, name, kind, scopes, ...(applicationIds ? { applicationIds } : {}), expiresAt };
    if (options.json) return printJson(terminal, { server, profile: profileName, token, key, sources });
    terminal.print(
      table([
        ['server', server],
        ['profile', profile ? profileName : 'none'],
        ['token', `${name} (${kind}, ${id})${sources.token === 'environment' ? ', from BERTH_TOKEN' : ''}`],
        ['scopes', scopes.join(' ')],
        ['applications', applicationIds?.join(' ') ?? 'all'],
        ['expires', expiresAt ?? 'never'],
        ['agent key', key ? `${key.id} of application ${key.applicationId}` : UNSAVED_KEY_TEXTS[sources.key]],
      ]),
    );
  });
