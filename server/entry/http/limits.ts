// HTTP handlers for limits.
import type { Limits } from '../../domain/limits/limits.ts';
import { type Answer, tagged } from './answer.ts';
import type { In } from './bind.ts';

export const limitHandlers = (limits: Pick<Limits, 'read' | 'replace'>) => ({
  readLimits: async ({ caller, params }: In<'readLimits'>): Promise<Answer> =>
    tagged(await limits.read(caller, params.appId)),

  replaceLimits: async ({ caller, params, headers, body }: In<'replaceLimits'>): Promise<Answer> =>
    tagged(await limits.replace(caller, params.appId, headers['if-match'], body)),
});
