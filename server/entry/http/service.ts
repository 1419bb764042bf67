// HTTP handlers of the service itself: landing page, health, readiness, metrics.
import type { Registry } from 'prom-client';
import type { Readiness } from '../../../contract/service.ts';
import { reason } from '../../kit/fault.ts';
import { within } from '../../kit/wait.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';
import { landingPage } from './landing.ts';

const READY_MS = 5000;

export interface Ready {
  readonly ok: boolean;
  readonly checks: Readiness['checks'];
}

export interface ServiceParts {
  readonly version: string;
  readonly ready: () => Promise<Ready>;
  readonly metrics: Registry;
}

export const serviceHandlers = ({ version, ready, metrics }: ServiceParts) => ({
  welcome: async ({ wantsHtml }: In<'welcome'>): Promise<Answer> =>
    wantsHtml ? landingPage(version) : answer({ name: 'Berth', version, docs: '/docs', openapi: '/openapi.yaml' }),

  readHealth: async (_: In<'readHealth'>): Promise<Answer> => answer({ status: 'ok' }),

  readReadiness: async (_: In<'readReadiness'>): Promise<Answer> => {
    const { ok, checks } = await checked(ready);
    return { status: ok ? 200 : 503, body: { status: ok ? 'ready' : 'not_ready', checks } satisfies Readiness };
  },

  readMetrics: async (_: In<'readMetrics'>): Promise<Answer> => ({
    body: await metrics.metrics(),
    contentType: metrics.contentType,
  }),
});

/** A check that throws or hangs counts as not ready. */
async function checked(ready: () => Promise<Ready>): Promise<Ready> {
  try {
    return await within(READY_MS, 'the readiness checks', ready);
  } catch (error) {
    return { ok: false, checks: [{ name: 'checks', ok: false, detail: reason(error) }] };
  }
}
