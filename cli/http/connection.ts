// Determines which service a command calls, and with which credentials: from its options, from the environment or from
// a profile.
import { type Berth, BerthError, berthClient } from '../../sdk/index.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';
import { PROFILE_DEFAULT, type Profile, readProfile } from './profiles.ts';

const SERVER_DEFAULT = 'http://127.0.0.1:8080';

export interface HttpOptions {
  readonly server?: string;
  readonly profile?: string;
  readonly json?: true;
}

export interface KeyOptions extends HttpOptions {
  readonly key?: string;
}

export interface Connection {
  readonly berth: Berth;
  readonly server: string;
  readonly profileName: string;
  /** Undefined if there is no saved profile, or if its credentials are for another address. */
  readonly profile: Profile | undefined;
  /** Where each credential comes from. */
  readonly sources: { readonly key: CredentialSource; readonly token: CredentialSource };
}

export type CredentialSource = 'option' | 'environment' | 'profile' | 'none';

/** Runs a command over HTTP. Maps failures to exit codes. */
export async function overHttp(
  terminal: Terminal,
  options: KeyOptions,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  const connection = resolveConnection(terminal, options);
  try {
    await work(connection);
  } catch (error) {
    throw error instanceof BerthError ? toCommandFailed(error, connection) : error;
  }
}

/**
 * A named profile takes precedence over the environment; otherwise the environment takes precedence over the default
 * profile.
 */
function resolveConnection(terminal: Terminal, options: KeyOptions): Connection {
  const profileName = options.profile ?? PROFILE_DEFAULT;
  const savedProfile = readProfile(terminal, profileName);
  if (options.profile !== undefined && !savedProfile)
    throw new CommandFailed(
      EXIT.notFound,
      `There is no profile ${profileName}. ${loginAdvice(undefined, profileName)}`,
    );
  const server = serverOf(terminal, options, savedProfile);
  const { BERTH_KEY, BERTH_TOKEN } = options.profile === undefined ? terminal.env : {};
  // The credentials of a profile are sent only to the address of that profile.
  const profile = savedProfile?.server === server ? savedProfile : undefined;
  const key = options.key ?? (BERTH_KEY || profile?.key?.value || '');
  const token = BERTH_TOKEN || profile?.token?.value || '';
  const sources = {
    key: sourceOf(options.key, BERTH_KEY, profile?.key),
    token: sourceOf(undefined, BERTH_TOKEN, profile?.token),
  };
  return { berth: berthClient({ url: server, key, token }), server, profileName, profile, sources };
}

function sourceOf(option: string | undefined, environment: string | undefined, saved: unknown): CredentialSource {
  if (option !== undefined) return 'option';
  if (environment) return 'environment';
  return saved ? 'profile' : 'none';
}

export function serverOf({ env }: Terminal, options: HttpOptions, storedProfile: Profile | undefined): string {
  if (options.server !== undefined) return originOf(options.server);
  if (options.profile !== undefined && storedProfile) return storedProfile.server;
  return originOf(env.BERTH_URL || storedProfile?.server || SERVER_DEFAULT);
}

function originOf(address: string): string {
  const url = URL.parse(address);
  if (url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.username) return url.origin;
  throw new CommandFailed(
    EXIT.usage,
    `${address} is not a server address. Expected an http or https address without a path, such as https://berth.example`,
  );
}

const EXIT_OF_STATUS: Readonly<Record<number, ExitCode>> = {
  400: EXIT.usage,
  401: EXIT.denied,
  403: EXIT.denied,
  404: EXIT.notFound,
};

function toCommandFailed(error: BerthError, connection: Connection): CommandFailed {
  const { message, advice, code, status, requestId } = error;
  if (code === 'no_credential') return new CommandFailed(EXIT.denied, missingCredentialText(error, connection));
  const issues = Array.isArray(error.details?.issues)
    ? error.details.issues.map(issue => `\n  ${issueText(issue)}`)
    : [];
  const loginHint = status === 401 ? ` ${loginAdvice(connection.server, connection.profileName)}` : '';
  const exit = code === 'unreachable' ? EXIT.unreachable : (EXIT_OF_STATUS[status ?? 0] ?? EXIT.failed);
  const requestText = requestId && exit === EXIT.failed ? ` (request ${requestId})` : '';
  const hint = loginHint || (advice && !message.includes(advice) ? ` ${advice}` : '');
  return new CommandFailed(exit, `${message}${issues.join('')}${hint}${requestText}`);
}

function issueText(issue: unknown): string {
  if (typeof issue !== 'object' || issue === null || !('path' in issue && 'message' in issue)) return String(issue);
  return `${issue.path}: ${issue.message}`;
}

function missingCredentialText({ details }: BerthError, { server, profileName }: Connection): string {
  if (details?.credential === 'token') return `There is no login for ${server}. ${loginAdvice(server, profileName)}`;
  return `There is no agent key for ${server}. Run \`berth keys create --app ID --save\`${profileName === PROFILE_DEFAULT ? '' : ` with \`--profile ${profileName}\``}, or pass a key with \`--key\` or BERTH_KEY.`;
}

function loginAdvice(server: string | undefined, profileName: string): string {
  const profile = profileName === PROFILE_DEFAULT ? '' : ` --profile ${profileName}`;
  return `Run \`berth login --server ${server ?? 'URL'}${profile}\`.`;
}
