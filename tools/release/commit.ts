// The commit from which a release is made, and its time. All files of the release get this time, so that two runs
// produce identical bytes.
import { spawnSync } from 'node:child_process';

export interface Commit {
  /** Ends with `-changed` if files differ from the commit. */
  readonly id: string;
  readonly at: Date;
}

/** Used in a folder that is not a Git checkout. */
const NO_COMMIT: Commit = { id: 'unknown', at: new Date('2000-01-01T00:00:00Z') };

export function commitOf(root: string): Commit {
  const [id, time] = (git(root, 'log', '-1', '--format=%H %ct') ?? '').trim().split(' ');
  if (!id || !time) return NO_COMMIT;
  const isChanged = (git(root, 'status', '--porcelain') ?? '') !== '';
  return { id: isChanged ? `${id}-changed` : id, at: new Date(Number(time) * 1000) };
}

function git(root: string, ...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}
