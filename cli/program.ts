// The command line as it is declared: names, options, help. What a command does stands in commands/, and is loaded only
// when it runs, so that `berth --version` does not load a server.
import { Command, InvalidArgumentError } from 'commander';
import about from '../package.json' with { type: 'json' };
import type { CreateKeyOptions, ListKeysOptions } from './commands/keys.ts';
import type { CreateTokenOptions } from './commands/tokens.ts';
import { exitCodeHelp } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** Called by the one command whose success is not simply 0: the server that ended by itself. */
type Ended = (code: number) => void;

const NOWHERE: Terminal = { env: {}, print: () => {}, say: () => {} };

export function berthProgram(terminal: Terminal = NOWHERE, ended: Ended = () => {}): Command {
  const program = new Command('berth')
    .description('Cloud browser sessions for software agents, on your own machines.')
    .version(about.version, '--version', 'print the version')
    .helpOption('--help', 'print help')
    .helpCommand(false)
    .addHelpText('after', `\n${exitCodeHelp()}`)
    .configureOutput({ writeOut: terminal.print, writeErr: terminal.say })
    .showHelpAfterError('(berth --help lists the commands)')
    .exitOverride();
  addService(program, terminal, ended);
  addKeys(program, terminal);
  addTokens(program, terminal);
  addConsole(program, terminal);
  return program;
}

function addService(program: Command, terminal: Terminal, ended: Ended): void {
  program
    .command('serve')
    .description(
      'Run the service in the foreground. SIGTERM leaves running sessions for the next start, SIGINT ends them.',
    )
    .action(async () => ended(await (await import('./commands/serve.ts')).serve(terminal)));
  program
    .command('stop')
    .description('Stop the service of this data folder and end every browser that it leaves.')
    .option('--drain', 'let the service end its sessions itself, as COMPLETED / drained')
    .option('--json', 'print the result as JSON')
    .action(async (options: { drain?: true; json?: true }) =>
      (await import('./commands/stop.ts')).stop(terminal, options),
    );
  program
    .command('sweep')
    .description('Remove the files and rows of sessions whose time is over, as the service does by itself.')
    .option('--dry-run', 'print what would go, and remove nothing')
    .option('--json', 'print the result as JSON')
    .action(async (options: { dryRun?: true; json?: true }) =>
      (await import('./commands/sweep.ts')).sweep(terminal, options),
    );
  program
    .command('doctor')
    .description('Say what this machine has, what it lacks, and how to mend it.')
    .option('--json', 'print the findings as JSON')
    .action(async (options: { json?: true }) => (await import('./commands/doctor.ts')).doctor(terminal, options));
  program
    .command('openapi')
    .description('Print the OpenAPI 3.1 description of the API.')
    .option('--json', 'as JSON instead of YAML')
    .action(async (options: { json?: true }) => (await import('./commands/openapi.ts')).openapi(terminal, options));
}

function addKeys(program: Command, terminal: Terminal): void {
  const keys = program
    .command('keys')
    .description('Agent keys: what programs use browsers with. Works beside a running service.')
    .helpCommand(false);
  keys
    .command('create')
    .description('Make an agent key and print it, this once. Only its hash is kept.')
    .option('--application <ID|NAME>', 'the application it belongs to; needed when there are several')
    .option('--name <NAME>', 'what to call it', 'cli')
    .option('--scope <SCOPE...>', 'what it may do; all browser scopes unless given')
    .option('--expires <TIME>', 'when it stops working, as 2027-01-31 or 2027-01-31T12:00:00Z', readTime)
    .option('--json', 'print {"id","applicationId","key"}')
    .action(async (options: CreateKeyOptions) => (await import('./commands/keys.ts')).createKey(terminal, options));
  keys
    .command('list')
    .description('List agent keys, without the keys themselves.')
    .option('--application <ID|NAME>', 'of this application; needed when there are several')
    .option('--json', 'print a JSON array')
    .action(async (options: ListKeysOptions) => (await import('./commands/keys.ts')).listKeys(terminal, options));
  keys
    .command('revoke')
    .description('Revoke an agent key, at once and for good.')
    .argument('<KEY_ID>', 'the id of the key')
    .option('--application <ID|NAME>', 'the application it belongs to; needed when there are several')
    .option('--json', 'print {"id","applicationId","revoked"}')
    .action(async (id: string, options: ListKeysOptions) =>
      (await import('./commands/keys.ts')).revokeKey(terminal, id, options),
    );
}

function addTokens(program: Command, terminal: Terminal): void {
  program
    .command('tokens')
    .description('Personal access tokens: what scripts manage applications and keys with.')
    .helpCommand(false)
    .command('create')
    .description('Make a personal access token and print it, this once. Only its hash is kept.')
    .option('--name <NAME>', 'what to call it', 'cli')
    .option('--scope <SCOPE...>', 'what it may do; everything unless given')
    .option('--application <ID|NAME...>', 'confine it to these applications; all unless given')
    .option('--cidr <RANGE...>', 'address ranges it may be used from, as 203.0.113.0/24; any unless given')
    .option('--expires <TIME>', 'when it stops working, as 2027-01-31 or 2027-01-31T12:00:00Z', readTime)
    .option('--json', 'print {"id","token"}')
    .action(async (options: CreateTokenOptions) =>
      (await import('./commands/tokens.ts')).createToken(terminal, options),
    );
}

function addConsole(program: Command, terminal: Terminal): void {
  program
    .command('console')
    .description('Print a link that signs in to the web console, good for a day.')
    .option('--json', 'print {"url"}')
    .action(async (options: { json?: true }) => (await import('./commands/console.ts')).consoleLink(terminal, options));
}

function readTime(text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime()) || !/^\d{4}-\d\d-\d\d/.test(text))
    throw new InvalidArgumentError('expected a time such as 2027-01-31 or 2027-01-31T12:00:00Z');
  return time;
}
