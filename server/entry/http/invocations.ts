// HTTP handlers for operations, invocations and receipts.
import { DISCOVERY_CACHE_SECONDS } from '../../../contract/discovery.ts';
import { INVOKE_WAIT_SECONDS_DEFAULT, type Invocation } from '../../../contract/invocations.ts';
import type { Invocations } from '../../domain/invocations/invocations.ts';
import type { InvocationsOfApplication } from '../../domain/invocations/of-application.ts';
import type { HandlerInput } from './bind.ts';
import { conditionalResponse } from './config.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import { readPreferences } from './preferences.ts';

export type InvocationMethods = Pick<
  Invocations,
  'discover' | 'listCallable' | 'readOperation' | 'invoke' | 'list' | 'read' | 'cancel' | 'receiptStatus' | 'file'
>;

export type ApplicationInvocationMethods = Pick<InvocationsOfApplication, 'list' | 'read'>;

const RETRY_AFTER_SECONDS = '2';

export const invocationHandlers = (
  invocations: InvocationMethods,
  applicationInvocations: ApplicationInvocationMethods,
) => ({
  discoverOperations: async ({
    caller,
    params,
    query,
    headers,
  }: HandlerInput<'discoverOperations'>): Promise<HttpResponse> =>
    discoveryResponse(await invocations.discover(caller, params.appId, query), headers['if-none-match']),

  readAgentOperation: async ({ caller, params, headers }: HandlerInput<'readAgentOperation'>): Promise<HttpResponse> =>
    discoveryResponse(
      await invocations.readOperation(caller, params.appId, params.operationId),
      headers['if-none-match'],
    ),

  invokeOperation: async ({
    caller,
    params,
    body,
    headers,
    signal,
  }: HandlerInput<'invokeOperation'>): Promise<HttpResponse> => {
    const idempotencyKey = headers['idempotency-key'];
    const { invocation, isReplayed } = await invocations.invoke(caller, params.appId, params.operationId, body, {
      ...{ waitSeconds: waitSecondsOf(headers.prefer), signal },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    });
    const replayHeaders = isReplayed ? { 'idempotency-replayed': 'true' } : {};
    return invocationResponse(params.appId, invocation, replayHeaders);
  },

  listInvocations: async ({ caller, params, query }: HandlerInput<'listInvocations'>): Promise<HttpResponse> =>
    jsonResponse(await invocations.list(caller, params.appId, query)),

  readInvocation: async ({ caller, params, query, signal }: HandlerInput<'readInvocation'>): Promise<HttpResponse> =>
    jsonResponse(await invocations.read(caller, params.appId, params.id, query, signal)),

  cancelInvocation: async ({ caller, params, signal }: HandlerInput<'cancelInvocation'>): Promise<HttpResponse> =>
    jsonResponse(await invocations.cancel(caller, params.appId, params.id, signal)),

  listApplicationInvocations: async ({
    caller,
    params,
    query,
  }: HandlerInput<'listApplicationInvocations'>): Promise<HttpResponse> =>
    jsonResponse(await applicationInvocations.list(caller, params.appId, query)),

  readApplicationInvocation: async ({
    caller,
    params,
  }: HandlerInput<'readApplicationInvocation'>): Promise<HttpResponse> =>
    jsonResponse(await applicationInvocations.read(caller, params.appId, params.id)),

  readReceiptStatus: async ({ params }: HandlerInput<'readReceiptStatus'>): Promise<HttpResponse> =>
    jsonResponse(await invocations.receiptStatus(params.jti)),
});

/** Only the caller may cache the response, because other keys have other grants. */
const discoveryResponse = (body: object, ifNoneMatch: string | undefined): HttpResponse =>
  conditionalResponse(body, ifNoneMatch, {
    'cache-control': `private, max-age=${DISCOVERY_CACHE_SECONDS}`,
    vary: 'authorization',
  });

/** The response with an invocation. The status is 202 while the invocation is running. */
export function invocationResponse(
  appId: string,
  invocation: Invocation,
  headers: Readonly<Record<string, string>>,
): HttpResponse {
  if (invocation.endedAt !== undefined) return jsonResponse(invocation, headers);
  const location = `/v1/agent/applications/${appId}/invocations/${invocation.id}`;
  return { status: 202, body: invocation, headers: { ...headers, location, 'retry-after': RETRY_AFTER_SECONDS } };
}

export function waitSecondsOf(prefer: string | undefined): number {
  const { waitSeconds, isAsync, hasZeroWait } = readPreferences(prefer);
  if (isAsync || hasZeroWait) return 0;
  return waitSeconds ?? INVOKE_WAIT_SECONDS_DEFAULT;
}
