// The route to which OpenID providers redirect the browsers of consumers. Not an operation of the API, because no
// program calls it.
import type { FastifyInstance } from 'fastify';
import type { Upstream } from '../../domain/consumers/upstream.ts';
import { sourceOf } from '../../domain/identity/callers.ts';
import { presentedCredentialsOf } from '../../domain/identity/presented.ts';

const SEE_OTHER = 303;

export function serveConsumerCallback(
  app: FastifyInstance,
  upstream: Pick<Upstream, 'finish'>,
  trustedProxies: readonly string[],
): void {
  app.get('/v1/consumer/callback', async (request, reply) => {
    const source = sourceOf({ ...presentedCredentialsOf(request, trustedProxies), requestId: request.id });
    return reply.redirect(await upstream.finish(Object(request.query), source), SEE_OTHER);
  });
}
