// Determines which pages may send requests of consumers (CORS): the pages of this service, and those of the origins
// that the application has registered.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';

export interface ApplicationOriginsParts {
  readonly isOwn: (origin: string) => boolean;
  readonly allows: (appId: string, origin: string) => Promise<boolean>;
}

const PREFLIGHT_MAX_AGE_SECONDS = '600';
const EXPOSED_HEADERS = 'retry-after, www-authenticate, x-request-id, x-should-retry';

export class ApplicationOrigins {
  readonly #parts: ApplicationOriginsParts;

  constructor(parts: ApplicationOriginsParts) {
    this.#parts = parts;
  }

  /**
   * Admits a request only if its origin is allowed. A request without `Origin` was not sent by a page.
   * @throws Fault `origin_not_allowed`.
   */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { origin } = request.headers;
    if (origin === undefined || this.#parts.isOwn(origin)) return;
    reply.header('vary', 'Origin');
    const { appId = '' }: { appId?: string } = Object(request.params);
    if (!(await this.#parts.allows(appId, origin))) throw originFault();
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS });
  }

  /** Answers preflight requests for this path. */
  handlePreflights(app: FastifyInstance, url: string): void {
    app.options(url, async (request, reply) => {
      await this.admit(request, reply);
      reply.headers({
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers': 'authorization, content-type',
        'access-control-max-age': PREFLIGHT_MAX_AGE_SECONDS,
      });
      return reply.code(204).send();
    });
  }
}

const originFault = (): Error =>
  fault('origin_not_allowed', 'The application has not registered the origin of this page.', {
    advice: 'An admin of the application can add the origin to `origins` with PUT /v1/applications/{appId}/identity.',
  });
