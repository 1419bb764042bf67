// HTTP handlers for operations, invocations and receipts.
import { DISCOVERY_CACHED_SECONDS } from '../../../contract/discovery.ts';
import { INVOKE_WAIT_SECONDS_DEFAULT, type Invocation } from '../../../contract/invocations.ts';
import type { Invocations } from '../../domain/invocations/invocations.ts';
import type { InvocationsOfApplication } from '../../domain/invocations/of-application.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { conditional } from './config.ts';
import { readPreferences } from './preferences.ts';

export type InvocationVerbs = Pick<
  Invocations,
  'discover' | 'callable' | 'readOperation' | 'invoke' | 'list' | 'read' | 'cancel' | 'receiptStatus' | 'file'
>;

export type ApplicationInvocationVerbs = Pick<InvocationsOfApplication, 'list' | 'read'>;

const RETRY_AFTER = '2';

export const invocationHandlers = (invocations: InvocationVerbs, ofApplication: ApplicationInvocationVerbs) => ({
  discoverOperations: async ({ caller, params, query, headers }: In<'discoverOperations'>): Promise<Answer> =>
    discovered(await invocations.discover(caller, params.appId, query), headers['if-none-match']),

  readAgentOperation: async ({ caller, params, headers }: In<'readAgentOperation'>): Promise<Answer> =>
    discovered(await invocations.readOperation(caller, params.appId, params.operationId), headers['if-none-match']),

  invokeOperation: async ({ caller, params, body, headers, signal }: In<'invokeOperation'>): Promise<Answer> => {
    const idempotencyKey = headers['idempotency-key'];
    const { invocation, isReplayed } = await invocations.invoke(caller, params.appId, params.operationId, body, {
      ...{ waitSeconds: waitOf(headers.prefer), signal },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    const more = isReplayed ? { 'idempotency-replayed': 'true' } : {};
    return invoked(params.appId, invocation, more);
  },

  listInvocations: async ({ caller, params, query }: In<'listInvocations'>): Promise<Answer> =>
    answer(await invocations.list(caller, params.appId, query)),

  readInvocation: async ({ caller, params, query, signal }: In<'readInvocation'>): Promise<Answer> =>
    answer(await invocations.read(caller, params.appId, params.id, query.wait ?? 0, signal)),

  cancelInvocation: async ({ caller, params, signal }: In<'cancelInvocation'>): Promise<Answer> =>
    answer(await invocations.cancel(caller, params.appId, params.id, signal)),

  listApplicationInvocations: async ({ caller, params, query }: In<'listApplicationInvocations'>): Promise<Answer> =>
    answer(await ofApplication.list(caller, params.appId, query)),

  readApplicationInvocation: async ({ caller, params }: In<'readApplicationInvocation'>): Promise<Answer> =>
    answer(await ofApplication.read(caller, params.appId, params.id)),

  readReceiptStatus: async ({ params }: In<'readReceiptStatus'>): Promise<Answer> =>
    answer(await invocations.receiptStatus(params.jti)),
});

/** Only the caller may cache the response, because other keys have other grants. */
const discovered = (body: object, known: string | undefined): Answer =>
  conditional(body, known, { 'cache-control': `private, max-age=${DISCOVERY_CACHED_SECONDS}`, vary: 'authorization' });

/** The response with an invocation. The status is 202 while the invocation is running. */
export function invoked(appId: string, invocation: Invocation, headers: Readonly<Record<string, string>>): Answer {
  if (invocation.endedAt !== undefined) return answer(invocation, headers);
  const location = `/v1/agent/applications/${appId}/invocations/${invocation.id}`;
  return { status: 202, body: invocation, headers: { ...headers, location, 'retry-after': RETRY_AFTER } };
}

export function waitOf(prefer: string | undefined): number {
  const { waitSeconds, isAsync, hasZeroWait } = readPreferences(prefer);
  if (isAsync || hasZeroWait) return 0;
  return waitSeconds ?? INVOKE_WAIT_SECONDS_DEFAULT;
}
