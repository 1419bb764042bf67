// HTTP handlers of the host.
import type { Host } from '../../domain/host/host.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export const hostHandlers = (host: Pick<Host, 'read' | 'examine'>) => ({
  readHost: async ({ caller }: In<'readHost'>): Promise<Answer> => answer(await host.read(caller)),
  examineHost: async ({ caller }: In<'examineHost'>): Promise<Answer> => answer(await host.examine(caller)),
});
