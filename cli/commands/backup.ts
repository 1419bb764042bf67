// `berth backup` and `berth restore`.
import { backup } from '../../server/backup.ts';
import { restore } from '../../server/restore.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';
import type { JsonOption } from './tokens.ts';

export async function takeBackup(terminal: Terminal, target: string, options: JsonOption): Promise<void> {
  const made = await backup(terminal.env, target);
  if (options.json) return printJson(terminal, made);
  terminal.print(
    `${made.path}: ${made.files} files, ${made.bytes} bytes. Keep this archive secret: it contains all secrets of this installation.\n`,
  );
  if (made.removedMeanwhile > 0)
    terminal.print(`The archive includes ${made.removedMeanwhile} files that were removed during the backup.\n`);
  for (const one of made.notCopied) terminal.print(`Not included: ${one}.\n`);
}

export async function restoreBackup(terminal: Terminal, source: string, options: JsonOption): Promise<void> {
  const restored = await restore(terminal.env, source).catch(error => {
    if (error instanceof Error && 'code' in error && error.code === 'not_found')
      throw new CommandFailed(EXIT.notFound, error.message);
    throw error;
  });
  if (options.json) return printJson(terminal, restored);
  terminal.print(
    `Restored ${restored.files} files from ${restored.path} to ${restored.dataDir}. The backup was made at ${restored.createdAt} by Berth ${restored.madeBy}.\n`,
  );
  for (const one of restored.notRestored) terminal.print(`Not included: ${one}.\n`);
  terminal.print(
    'Start the service. Sessions that were running when the backup was made will end as ERROR / service_restart.\n',
  );
}
