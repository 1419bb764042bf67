// HTTP handlers for the hand-off commands of consumers.
import type { ConsumerHandoffs } from '../../domain/consumers/consumer-handoffs.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export interface ConsumerHandoffParts {
  readonly handoffs: Pick<ConsumerHandoffs, 'list' | 'read' | 'claim'>;
}

export const consumerHandoffHandlers = ({ handoffs }: ConsumerHandoffParts) => ({
  listConsumerHandoffs: async ({ caller, body }: HandlerInput<'listConsumerHandoffs'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.list(caller, body)),

  readConsumerHandoff: async ({ caller, body }: HandlerInput<'readConsumerHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.read(caller, body.id)),

  claimConsumerHandoff: async ({ caller, body }: HandlerInput<'claimConsumerHandoff'>): Promise<HttpResponse> =>
    jsonResponse(await handoffs.claim(caller, body.id)),
});
