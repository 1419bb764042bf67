// Declares `berth keys`. Its commands use the data folder, or HTTP if --app names an application.
import type { Command } from 'commander';
import { CommandFailed } from './command-failed.ts';
import type { CreateKeyOptions, ListKeysOptions } from './commands/keys.ts';
import type { AppOptions, CreateAppKeyOptions } from './commands/keys-over-http.ts';
import type { JsonOption } from './commands/tokens.ts';
import { EXIT } from './exit-codes.ts';
import { addProfileOptions } from './http-program.ts';
import { readTime } from './option-values.ts';
import type { Terminal } from './terminal.ts';

type LocalOrHttp<Local, Http extends AppOptions> = Local & Partial<Http>;

export function addKeyCommands(program: Command, terminal: Terminal): void {
  const keys = program
    .command('keys')
    .description(
      'Manage agent keys, which let programs use browsers. Works on the data folder, even while the service is running, or over HTTP with --app.',
    )
    .helpCommand(false);
  const createCommand = keys
    .command('create')
    .description('Create an agent key and print it. It is shown only once, because only its hash is stored.')
    .option('--name <NAME>', 'the name of the key', 'cli')
    .option('--scope <SCOPE...>', 'its scopes (default: all browser scopes)')
    .option('--expires <TIME>', 'when it expires, such as 2027-01-31 or 2027-01-31T12:00:00Z', readTime)
    .option('--save', 'over HTTP: save the key in the profile for use with berth sessions, instead of printing it')
    .option('--json', 'print {"id","applicationId","key"}');
  addTargetOptions(createCommand).action(async (options: LocalOrHttp<CreateKeyOptions, CreateAppKeyOptions>) => {
    const http = httpOptionsOf(options);
    if (http) return (await import('./commands/keys-over-http.ts')).createAppKey(terminal, http);
    return (await import('./commands/keys.ts')).createKey(terminal, options);
  });
  const listCommand = keys
    .command('list')
    .description('List agent keys, without the keys themselves.')
    .option('--json', 'print a JSON array');
  addTargetOptions(listCommand).action(async (options: LocalOrHttp<ListKeysOptions, AppOptions>) => {
    const http = httpOptionsOf(options);
    if (http) return (await import('./commands/keys-over-http.ts')).listAppKeys(terminal, http);
    return (await import('./commands/keys.ts')).listKeys(terminal, options);
  });
  const revokeCommand = keys
    .command('revoke')
    .description('Revoke an agent key immediately. This cannot be undone.')
    .argument('<KEY_ID>', 'the id of the key')
    .option('--json', 'print {"id","applicationId","revoked"}');
  addTargetOptions(revokeCommand).action(async (id: string, options: LocalOrHttp<ListKeysOptions, AppOptions>) => {
    const http = httpOptionsOf(options);
    if (http) return (await import('./commands/keys-over-http.ts')).revokeAppKey(terminal, id, http);
    return (await import('./commands/keys.ts')).revokeKey(terminal, id, options);
  });
  keys
    .command('rotate-signing')
    .description(
      'Create a new signing key, and retire the current key. A retired key still verifies signatures for 400 days.',
    )
    .option('--json', 'print {"kid"}')
    .action(async (options: JsonOption) => (await import('./commands/vault.ts')).rotateSigningKey(terminal, options));
}

const addTargetOptions = (command: Command): Command =>
  addProfileOptions(
    command
      .option('--application <ID|NAME>', 'on the data folder: the application; required if there are several')
      .option('--app <ID>', 'over HTTP: the id of the application'),
    'over HTTP: ',
  );

function httpOptionsOf<Options extends Partial<CreateAppKeyOptions>>(
  options: Options & { readonly application?: string },
): (Options & AppOptions) | undefined {
  const { app, application, server, profile, save } = options;
  if (app === undefined && (server ?? profile ?? save) === undefined) return undefined;
  if (app === undefined)
    throw new CommandFailed(EXIT.usage, '--server, --profile and --save apply only to keys over HTTP. Add --app ID.');
  if (application !== undefined)
    throw new CommandFailed(
      EXIT.usage,
      '--app works over HTTP, and --application on the data folder. Use only one of them.',
    );
  return { ...options, app };
}
