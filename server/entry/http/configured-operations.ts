// HTTP handlers for operations that an application configures.
import type { ConfiguredOperations } from '../../domain/configured-operations/configured-operations.ts';
import { type Answer, answer, nothing, tagged } from './answer.ts';
import type { In } from './bind.ts';

export type ConfiguredOperationVerbs = Pick<
  ConfiguredOperations,
  'list' | 'read' | 'configure' | 'publish' | 'withdraw' | 'delete'
>;

export const configuredOperationHandlers = (operations: ConfiguredOperationVerbs) => ({
  listConfiguredOperations: async ({ caller, params, query }: In<'listConfiguredOperations'>): Promise<Answer> =>
    answer(await operations.list(caller, params.appId, query)),

  readConfiguredOperation: async ({ caller, params, query }: In<'readConfiguredOperation'>): Promise<Answer> =>
    tagged(await operations.read(caller, params.appId, params.id, query.revision)),

  configureOperation: async ({ caller, params, headers, body }: In<'configureOperation'>): Promise<Answer> => {
    const { operation, isNew } = await operations.configure(caller, params.appId, params.id, headers['if-match'], body);
    return { ...tagged(operation), status: isNew ? 201 : 200 };
  },

  publishOperation: async ({ caller, params }: In<'publishOperation'>): Promise<Answer> =>
    tagged(await operations.publish(caller, params.appId, params.id)),

  withdrawOperation: async ({ caller, params }: In<'withdrawOperation'>): Promise<Answer> =>
    tagged(await operations.withdraw(caller, params.appId, params.id)),

  deleteOperation: async ({ caller, params, headers }: In<'deleteOperation'>): Promise<Answer> => {
    await operations.delete(caller, params.appId, params.id, headers['if-match']);
    return nothing();
  },
});
