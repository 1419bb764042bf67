// Declares the commands about backups, the vault and the audit log.
import type { Command } from 'commander';
import type { ListAuditOptions } from './commands/audit.ts';
import type { JsonOption } from './commands/tokens.ts';
import { readCount } from './option-values.ts';
import type { Terminal } from './terminal.ts';

export function addSafeguardCommands(program: Command, terminal: Terminal): void {
  program
    .command('backup')
    .description(
      'Write a consistent copy of the database, files and secrets of this installation to one archive. Works while the service is running. Keep the archive secret.',
    )
    .argument(
      '<FILE|FOLDER>',
      'the archive, which must not exist yet, or a folder, in which the archive is named after the current time',
    )
    .option('--json', 'print {"path","files","bytes","removedMeanwhile","notCopied"}')
    .action(async (target: string, options: JsonOption) =>
      (await import('./commands/backup.ts')).takeBackup(terminal, target, options),
    );
  program
    .command('restore')
    .description(
      'Restore a backup into the data folder, which must be empty. All files are verified before any of them is restored.',
    )
    .argument('<FILE|FOLDER>', 'the archive, or a folder, from which the newest archive is restored')
    .option('--json', 'print {"path","dataDir","madeBy","createdAt","files","notRestored"}')
    .action(async (source: string, options: JsonOption) =>
      (await import('./commands/backup.ts')).restoreBackup(terminal, source, options),
    );
  const vault = program
    .command('vault')
    .description('Manage the vault, in which secrets are sealed. Works while the service is running.')
    .helpCommand(false);
  vault
    .command('rotate')
    .description(
      'Create a new master key, and wrap all data keys with it. With BERTH_MASTER_KEY or BERTH_MASTER_KEY_COMMAND, supply the new key first and the old key after it, separated by a comma.',
    )
    .option('--json', 'print {"rewrapped"}')
    .action(async (options: JsonOption) => (await import('./commands/vault.ts')).rotateVault(terminal, options));
  const audit = program
    .command('audit')
    .description('Read and check the audit log. Works while the service is running.')
    .helpCommand(false);
  audit
    .command('list')
    .description(
      'Print entries of the audit log, newest first. Without --application, prints the entries that belong to no application, such as sign-ins and tokens.',
    )
    .option('--application <id|name>', 'only entries of this application')
    .option('--limit <count>', 'print at most this many entries', readCount, 100)
    .option('--json', 'print a JSON array')
    .action(async (options: ListAuditOptions) => (await import('./commands/audit.ts')).listAudit(terminal, options));
  audit
    .command('verify')
    .description('Check the seals of the audit log, and print the first entry or seal that is missing or was changed.')
    .option('--json', 'print {"ok","chains","seals","entries","unsealed","problems"}')
    .action(async (options: JsonOption) => (await import('./commands/audit.ts')).verifyAudit(terminal, options));
}
