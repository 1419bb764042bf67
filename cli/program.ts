// Declares the command line: names, options and help texts. The commands are in commands/, and are loaded only when
// they run, so that `berth --version` does not load the server.
import { Command } from 'commander';
import type { AccountLinkOptions } from './commands/accounts.ts';
import type { CreateTokenOptions, JsonOption } from './commands/tokens.ts';
import { addCreditCommands } from './credits-program.ts';
import { exitCodeHelp } from './exit-codes.ts';
import { addHostCommands } from './hosts-program.ts';
import { addHttpCommands } from './http-program.ts';
import { addKeyCommands } from './keys-program.ts';
import { readTime } from './option-values.ts';
import { addReceiptCommands } from './receipts-program.ts';
import { addSafeguardCommands } from './safeguards-program.ts';
import type { Terminal } from './terminal.ts';
import { versionText } from './version.ts';

/** Called with the exit code of `berth serve`, the only command that may succeed with a code other than 0. */
type OnExit = (code: number) => void;

const SILENT_TERMINAL: Terminal = { env: {}, print: () => {}, say: () => {}, input: async () => '' };
/**
 * The kinds of commands. In the list of commands, `heading` is shown above the commands of a kind. `note` is shown
 * below the help text of each of them.
 */
const LOCAL_COMMANDS = {
  heading: 'For the operator, on this machine and its data folder:',
  note: 'For the operator: works on this machine and its data folder, without a credential.',
};
const HTTP_COMMANDS = {
  heading: 'Over HTTP, with any Berth service:',
  note: 'Works with any Berth service over HTTP, with the credentials of `berth login` or from the environment.',
};
const STANDALONE_COMMANDS = {
  heading: 'Without a service:',
  note: 'Needs neither a service nor the network.',
};
const LOCAL_OR_HTTP_COMMANDS = {
  note: 'With --app: works with any Berth service over HTTP, with the credentials of `berth login`. Otherwise: works on the data folder of this machine.',
};

export function berthProgram(terminal: Terminal = SILENT_TERMINAL, onExit: OnExit = () => {}): Command {
  const program = new Command('berth')
    .description('Cloud browser sessions for software agents, on your own machines.')
    .version(versionText(), '--version', 'print the version and the commit')
    .helpOption('--help', 'print help')
    .helpCommand(false)
    .addHelpText('after', `\n${exitCodeHelp()}`)
    .configureOutput({ writeOut: terminal.print, writeErr: terminal.say })
    .showHelpAfterError('(berth --help lists the commands)')
    .exitOverride();
  program.commandsGroup(LOCAL_COMMANDS.heading);
  addServiceCommands(program, terminal, onExit);
  addKeyCommands(program, terminal);
  addTokenCommands(program, terminal);
  addAccountCommands(program, terminal);
  addConsoleCommand(program, terminal);
  addSafeguardCommands(program, terminal);
  addCreditCommands(program, terminal);
  addHostCommands(program, terminal);
  program.commandsGroup(HTTP_COMMANDS.heading);
  addHttpCommands(program, terminal);
  program.commandsGroup(STANDALONE_COMMANDS.heading);
  addReceiptCommands(program, terminal);
  for (const command of program.commands) addKindNote(command);
  return program;
}

function addKindNote(command: Command): void {
  const kinds = [HTTP_COMMANDS, STANDALONE_COMMANDS];
  const ownKind = kinds.find(({ heading }) => heading === command.helpGroup()) ?? LOCAL_COMMANDS;
  for (const one of [command, ...command.commands])
    one.addHelpText('after', `\n${(isLocalOrHttp(one) ? LOCAL_OR_HTTP_COMMANDS : ownKind).note}`);
}

const isLocalOrHttp = (command: Command): boolean =>
  command.options.some(({ long }) => long === '--app') || command.commands.some(isLocalOrHttp);

function addServiceCommands(program: Command, terminal: Terminal, onExit: OnExit): void {
  program
    .command('serve')
    .description(
      'Run the service in the foreground. SIGTERM leaves running sessions for the next start, SIGINT ends them.',
    )
    .action(async () => onExit(await (await import('./commands/serve.ts')).serve(terminal)));
  program
    .command('stop')
    .description('Stop the service of this data folder, and end the browsers that the service left running.')
    .option('--drain', 'first end all sessions with the status COMPLETED and the reason drained')
    .option('--json', 'print the result as JSON')
    .action(async (options: { drain?: true; json?: true }) =>
      (await import('./commands/stop.ts')).stop(terminal, options),
    );
  program
    .command('status')
    .description(
      'Print the current status of the service of this data folder. The exit code shows whether the service is ready.',
    )
    .option('--json', 'print the status as JSON')
    .action(async (options: { json?: true }) => (await import('./commands/status.ts')).printStatus(terminal, options));
  program
    .command('config')
    .description('Check the settings.')
    .helpCommand(false)
    .command('check')
    .description(
      'Read the settings from the environment as the service does, and list all that are invalid or unknown. Does not start the service.',
    )
    .option('--json', 'print the settings as JSON, without secrets')
    .action(async (options: { json?: true }) => (await import('./commands/config.ts')).checkConfig(terminal, options));
  program
    .command('sweep')
    .description(
      'Remove the files and database rows of sessions whose retention period has ended. The service also does this automatically.',
    )
    .option('--dry-run', 'print what would be removed, and remove nothing')
    .option('--json', 'print the result as JSON')
    .action(async (options: { dryRun?: true; json?: true }) =>
      (await import('./commands/sweep.ts')).sweep(terminal, options),
    );
  program
    .command('doctor')
    .description('Check the requirements of this machine, and print how to meet each missing requirement.')
    .option('--json', 'print the findings as JSON')
    .action(async (options: { json?: true }) => (await import('./commands/doctor.ts')).runDoctor(terminal, options));
  program
    .command('openapi')
    .description('Print the OpenAPI 3.1 description of the API.')
    .option('--json', 'print JSON instead of YAML')
    .action(async (options: { json?: true }) =>
      (await import('./commands/openapi.ts')).printOpenapi(terminal, options),
    );
}

function addTokenCommands(program: Command, terminal: Terminal): void {
  const tokens = program
    .command('tokens')
    .description(
      'Manage personal access tokens, which let scripts manage applications and keys. Works while the service is running.',
    )
    .helpCommand(false);
  tokens
    .command('create')
    .description('Create a personal access token and print it. It is shown only once, because only its hash is stored.')
    .option('--name <NAME>', 'the name of the token', 'cli')
    .option('--scope <SCOPE...>', 'its scopes (default: all)')
    .option('--application <ID|NAME...>', 'the applications that the token may access (default: all)')
    .option(
      '--cidr <RANGE...>',
      'address ranges that the token may be used from, such as 203.0.113.0/24 (default: any)',
    )
    .option('--expires <TIME>', 'when it expires, such as 2027-01-31 or 2027-01-31T12:00:00Z', readTime)
    .option('--json', 'print {"id","token"}')
    .action(async (options: CreateTokenOptions) =>
      (await import('./commands/tokens.ts')).createToken(terminal, options),
    );
  tokens
    .command('list')
    .description('List personal access tokens, including those of console links, without the tokens themselves.')
    .option('--json', 'print a JSON array')
    .action(async (options: JsonOption) => (await import('./commands/tokens.ts')).listTokens(terminal, options));
  tokens
    .command('revoke')
    .description('Revoke a personal access token immediately. This cannot be undone.')
    .argument('<TOKEN_ID>', 'the id of the token')
    .option('--json', 'print {"id","revoked"}')
    .action(async (id: string, options: JsonOption) =>
      (await import('./commands/tokens.ts')).revokeToken(terminal, id, options),
    );
}

function addAccountCommands(program: Command, terminal: Terminal): void {
  const accounts = program
    .command('accounts')
    .description('Manage the accounts of people. Works while the service is running.')
    .helpCommand(false);
  accounts
    .command('link')
    .description(
      'Print a link that lets a person set the password of an account. It works once, and expires after a day.',
    )
    .option(
      '--email <EMAIL>',
      'the e-mail address of the account (default: the account that was created at the first start)',
    )
    .option('--json', 'print {"url"}')
    .action(async (options: AccountLinkOptions) =>
      (await import('./commands/accounts.ts')).printAccountLink(terminal, options),
    );
  program
    .command('outbox')
    .description(
      'Print the e-mails of the last 31 days, newest first. The text of an e-mail is deleted once it has been sent. Without BERTH_SMTP_URL, no e-mails are sent.',
    )
    .option('--json', 'print a JSON array')
    .action(async (options: JsonOption) => (await import('./commands/outbox.ts')).printOutbox(terminal, options));
}

function addConsoleCommand(program: Command, terminal: Terminal): void {
  program
    .command('console')
    .description('Print a link that signs in to the web console. It is valid for a day.')
    .option('--json', 'print {"url"}')
    .action(async (options: { json?: true }) =>
      (await import('./commands/console.ts')).printConsoleLink(terminal, options),
    );
}
