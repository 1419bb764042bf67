// Declares the commands about the hosts of a fleet.
import type { Command } from 'commander';
import type { DrainOptions } from './commands/hosts.ts';
import type { JsonOption } from './commands/tokens.ts';
import { readCount } from './option-values.ts';
import type { Terminal } from './terminal.ts';

const WAIT_SECONDS_DEFAULT = 3600;

export function addHostCommands(program: Command, terminal: Terminal): void {
  const hosts = program
    .command('hosts')
    .description('List the hosts that share this database, and take them out of service.')
    .helpCommand(false);
  hosts
    .command('list')
    .description('List the hosts, newest first.')
    .option('--json', 'print them as JSON')
    .action(async (options: JsonOption) => (await import('./commands/hosts.ts')).listHosts(terminal, options));
  hosts
    .command('drain')
    .description('Stop sending new sessions to a host, and wait until its running sessions have ended.')
    .argument('<ID>', 'the host')
    .option('--wait <SECONDS>', 'how long to wait', readCount, WAIT_SECONDS_DEFAULT)
    .option('--json', 'print the result as JSON')
    .action(async (id: string, options: DrainOptions) =>
      (await import('./commands/hosts.ts')).drainHost(terminal, id, options),
    );
  hosts
    .command('undrain')
    .description('Send new sessions to a host again.')
    .argument('<ID>', 'the host')
    .option('--json', 'print the result as JSON')
    .action(async (id: string, options: JsonOption) =>
      (await import('./commands/hosts.ts')).undrainHost(terminal, id, options),
    );
  hosts
    .command('remove')
    .description('Remove a stopped host from the list.')
    .argument('<ID>', 'the host')
    .option('--json', 'print the result as JSON')
    .action(async (id: string, options: JsonOption) =>
      (await import('./commands/hosts.ts')).removeHost(terminal, id, options),
    );
}
