// `berth backup` and `berth restore`: write an archive of the installation, and restore an installation from an
// archive.
import { backup } from '../../server/backup.ts';
import { restore } from '../../server/restore.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';
import type { JsonOption } from './tokens.ts';

export async function takeBackup(terminal: Terminal, target: string, options: JsonOption): Promise<void> {
  const backupResult = await backup(terminal.env, target);
  if (options.json) return printJson(terminal, backupResult);
  terminal.print(
    `${backupResult.path}: ${backupResult.files} files, ${backupResult.bytes} bytes. Keep this archive secret: it contains all secrets of this installation.\n`,
  );
  if (backupResult.removedMeanwhile > 0)
    terminal.print(
      `The archive includes ${backupResult.removedMeanwhile} files that were removed during the backup.\n`,
    );
  for (const one of backupResult.notCopied) terminal.print(`Not included: ${one}.\n`);
}

export async function restoreBackup(terminal: Terminal, source: string, options: JsonOption): Promise<void> {
  const restoreResult = await restore(terminal.env, source).catch(error => {
    if (error instanceof Error && 'code' in error && error.code === 'not_found')
      throw new CommandFailed(EXIT.notFound, error.message);
    throw error;
  });
  if (options.json) return printJson(terminal, restoreResult);
  terminal.print(
    `Restored ${restoreResult.files} files from ${restoreResult.path} to ${restoreResult.dataDir}. The backup was made at ${restoreResult.createdAt} by Berth ${restoreResult.madeBy}.\n`,
  );
  for (const one of restoreResult.notRestored) terminal.print(`Not included: ${one}.\n`);
  terminal.print(
    'Start the service. Sessions that were running when the backup was made will end as ERROR / service_restart.\n',
  );
}
