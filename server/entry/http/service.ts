// HTTP handlers for the service itself: landing page and health.
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { landingPage } from './landing.ts';

export interface ServiceParts {
  readonly version: string;
}

export const serviceHandlers = ({ version }: ServiceParts) => ({
  welcome: async ({ wantsHtml }: In<'welcome'>): Promise<Answer> =>
    wantsHtml ? landingPage(version) : answer({ name: 'Berth', version, docs: '/docs', openapi: '/openapi.yaml' }),

  readHealth: async (_: In<'readHealth'>): Promise<Answer> => answer({ status: 'ok' }),
});
