// A session is exclusive if the service types credentials into it: no client connects to it, no person controls it, and
// it is neither recorded without masks nor adopted by a restarted service. The row is marked as exclusive from its
// creation.
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { fault } from '../faults.ts';

export const EXCLUSIVE_SETTINGS = { exclusive: true } as const;

export const isExclusive = ({ settings }: Pick<SessionRow, 'settings'>): boolean => settings.exclusive === true;

export const sessionExclusive = (id: string): Error =>
  fault('permission_denied', `Session ${id} belongs to a call that types credentials. Only that call can use it.`, {
    advice: 'Wait until the call has ended, and read its output, recording and logs.',
  });
