// HTTP handlers for the service itself: landing page and health.

import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';
import { landingPage } from './landing.ts';

export interface ServiceParts {
  readonly version: string;
}

export const serviceHandlers = ({ version }: ServiceParts) => ({
  welcome: async ({ wantsHtml }: HandlerInput<'welcome'>): Promise<HttpResponse> =>
    wantsHtml
      ? landingPage(version)
      : jsonResponse({ name: 'Berth', version, docs: '/docs', openapi: '/openapi.yaml' }),

  readHealth: async (_: HandlerInput<'readHealth'>): Promise<HttpResponse> => jsonResponse({ status: 'ok' }),
});
