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
    `${made.path}: ${made.files} files, ${made.bytes} bytes. Anyone who has this file has all secrets of this installation.\n`,
  );
  if (made.removedMeanwhile > 0)
    terminal.print(`It includes ${made.removedMeanwhile} files that were removed while it was being made.\n`);
  for (const one of made.notCopied) terminal.print(`Not included: ${one}.\n`);
}

export async function restoreBackup(terminal: Terminal, source: string, options: JsonOption): Promise<void> {
  const did = await restore(terminal.env, source).catch(error => {
    if (error instanceof Error && 'code' in error && error.code === 'not_found')
      throw new CommandFailed(EXIT.notFound, error.message);
    throw error;
  });
  if (options.json) return printJson(terminal, did);
  terminal.print(
    `${did.dataDir} has the ${did.files} files of ${did.path}, made ${did.createdAt} by Berth ${did.madeBy}.\n`,
  );
  for (const one of did.notRestored) terminal.print(`Not included: ${one}.\n`);
  terminal.print('Start the service. Sessions that were running at that time will end as ERROR / service_restart.\n');
}
