// Declares the commands that speak HTTP with any Berth service: names, options and help texts.
import type { Command } from 'commander';
import type { LogKind } from '../contract/logs.ts';
import type { CreateAppOptions } from './commands/apps.ts';
import type { LoginOptions } from './commands/login.ts';
import type { McpOptions } from './commands/mcp.ts';
import type { CreateSessionOptions, EventsOptions, ListSessionsOptions, LogsOptions } from './commands/sessions.ts';
import type { HttpOptions, KeyOptions } from './http/connection.ts';
import { readCount, readPageNumber, readPair, readTime } from './option-values.ts';
import type { Terminal } from './terminal.ts';

const SESSION_LIMIT_DEFAULT = 25;
/**
 * The log kinds of the contract. They are repeated here, because importing them would load the contract's schemas at
 * the start of every command.
 */
const LOG_TYPES: Readonly<Record<LogKind, true>> = { console: true, network: true, page: true, command: true };
/** British English has no comma before the `or`. */
const ANY_OF = new Intl.ListFormat('en-GB', { type: 'disjunction' });

export function addHttpCommands(program: Command, terminal: Terminal): void {
  addLoginCommands(program, terminal);
  addAppCommands(program, terminal);
  addSessionCommands(program, terminal);
  addMcpCommand(program, terminal);
}

/**
 * Adds the profile options. `kind` is a prefix of their help texts, such as `over HTTP: `, in commands that also have
 * options of other kinds.
 */
export const addProfileOptions = (command: Command, kind = ''): Command =>
  command
    .option('--server <URL>', `${kind}the address of the service (default: BERTH_URL, or the address in the profile)`)
    .option('--profile <NAME>', `${kind}the profile to use (default: "default")`);

function addLoginCommands(program: Command, terminal: Terminal): void {
  addProfileOptions(
    program
      .command('login')
      .description(
        'Log in to a service: a person approves the login in a browser, and the token is saved in a profile. Profiles are stored in credentials.json in $XDG_CONFIG_HOME/berth or ~/.config/berth.',
      ),
  )
    .option('--scope <SCOPE...>', 'the scopes to request (default: applications:read applications:write keys:write)')
    .option('--token-stdin', 'save a personal access token from standard input instead of asking for approval')
    .option('--json', 'print {"profile","server","tokenId","expiresAt"}')
    .action(async (options: LoginOptions) => (await import('./commands/login.ts')).login(terminal, options));
  program
    .command('logout')
    .description('Remove a profile, and revoke the token and the agent key that were created for it.')
    .option('--profile <NAME>', 'the profile to remove (default: "default")')
    .option('--json', 'print {"profile","server","revoked"}')
    .action(async (options: HttpOptions) => (await import('./commands/login.ts')).logout(terminal, options));
  addProfileOptions(program.command('whoami').description('Print the service, the token and the agent key in use.'))
    .option('--json', 'print {"server","profile","token","key"}')
    .action(async (options: HttpOptions) => (await import('./commands/login.ts')).whoami(terminal, options));
}

function addAppCommands(program: Command, terminal: Terminal): void {
  const apps = program.command('apps').description('List and create applications, over HTTP.').helpCommand(false);
  addProfileOptions(apps.command('list').description('List the applications of the account.'))
    .option('--json', 'print a JSON array')
    .action(async (options: HttpOptions) => (await import('./commands/apps.ts')).listApps(terminal, options));
  addProfileOptions(
    apps
      .command('create')
      .description('Create an application and print its id.')
      .argument('<NAME>', 'the name of the application')
      .option('--slug <SLUG>', 'its slug, unique in the installation (default: derived from the name)'),
  )
    .option('--json', 'print the application as JSON')
    .action(async (name: string, options: CreateAppOptions) =>
      (await import('./commands/apps.ts')).createApp(terminal, name, options),
    );
}

function addMcpCommand(program: Command, terminal: Terminal): void {
  addProfileOptions(
    program
      .command('mcp')
      .description(
        'Serve the browser tools over MCP on standard input and output, for clients that start MCP servers as child processes.',
      ),
  )
    .option('--key <KEY>', 'the agent key (default: BERTH_KEY, or the key in the profile)')
    .option('--app <ID>', 'the id of the application that the key belongs to (default: the application in the profile)')
    .action(async (options: McpOptions) => (await import('./commands/mcp.ts')).serveMcp(terminal, options));
}

function addSessionCommands(program: Command, terminal: Terminal): void {
  const sessions = program
    .command('sessions')
    .description(
      'Create, list, read and release sessions over HTTP, with the agent key from --key, BERTH_KEY or the profile.',
    )
    .helpCommand(false);
  const addOptions = (command: Command, jsonHelp: string): Command =>
    addProfileOptions(command)
      .option('--key <KEY>', 'the agent key (default: BERTH_KEY, or the key in the profile)')
      .option('--json', jsonHelp);
  addOptions(
    sessions
      .command('list')
      .description('List the sessions of the application, newest first.')
      .option('--status <STATUS>', 'only sessions with this status; separate several with commas')
      .option('--limit <NUMBER>', 'maximum number of sessions to print', readCount, SESSION_LIMIT_DEFAULT),
    'print a JSON array',
  ).action(async (options: ListSessionsOptions) =>
    (await import('./commands/sessions.ts')).listSessions(terminal, options),
  );
  addOptions(
    sessions.command('get').description('Print a session.').argument('<ID>', 'the id of the session'),
    'print the session as JSON',
  ).action(async (id: string, options: KeyOptions) =>
    (await import('./commands/sessions.ts')).readSession(terminal, id, options),
  );
  addOptions(
    sessions
      .command('create')
      .description('Create a session and print its connectUrl, the address for a CDP client. It contains a key.')
      .option('--timeout <SECONDS>', 'its time limit', readCount)
      .option('--keep-alive', 'keep it running without clients')
      .option('--metadata <KEY=VALUE>', 'a pair of its userMetadata; may be repeated', readPair)
      .option('--wait <SECONDS>', 'seconds to wait until the session can start, at most 55', readCount),
    'print the session as JSON',
  ).action(async (options: CreateSessionOptions) =>
    (await import('./commands/sessions.ts')).createSession(terminal, options),
  );
  addOptions(
    sessions.command('release').description('End a session.').argument('<ID>', 'the id of the session'),
    'print the session as JSON',
  ).action(async (id: string, options: KeyOptions) =>
    (await import('./commands/sessions.ts')).releaseSession(terminal, id, options),
  );
  addOptions(
    sessions
      .command('logs')
      .description('Print the log of a session: console, network and page events, and client commands.')
      .argument('<ID>', 'the id of the session')
      .option('--type <TYPE>', `only ${ANY_OF.format(Object.keys(LOG_TYPES))}; separate several with commas`)
      .option('--page <NUMBER>', 'only entries of this page; -1 for those that belong to no page', readPageNumber)
      .option('--from <TIME>', 'only entries of this time or later', readTime)
      .option('--to <TIME>', 'only entries before this time', readTime),
    'print a JSON array',
  ).action(async (id: string, options: LogsOptions) =>
    (await import('./commands/sessions.ts')).printSessionLogs(terminal, id, options),
  );
  addOptions(
    sessions
      .command('events')
      .description('Print the events of a session.')
      .argument('<ID>', 'the id of the session')
      .option('--type <TYPE>', 'only events of this type; separate several with commas')
      .option('--from <TIME>', 'only events of this time or later', readTime)
      .option('--to <TIME>', 'only events before this time', readTime),
    'print a JSON array',
  ).action(async (id: string, options: EventsOptions) =>
    (await import('./commands/sessions.ts')).printSessionEvents(terminal, id, options),
  );
}
