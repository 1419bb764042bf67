// Responds with 405 to methods that a path does not support, and names the methods that it supports.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'] as const;

export function refuseOtherMethods(app: FastifyInstance, url: string, supported: ReadonlySet<string>): void {
  const allowedMethods = METHODS.filter(method => supported.has(method) || (method === 'HEAD' && supported.has('GET')));
  app.route({
    method: METHODS.filter(method => !allowedMethods.includes(method)),
    url,
    onRequest: async (request, reply) => {
      reply.header('allow', allowedMethods.join(', '));
      throw fault('method_not_allowed', `${pathOf(request)} does not support the method ${request.method}.`, {
        advice: `Use ${allowedMethods.join(' or ')}.`,
      });
    },
    handler: async () => undefined,
  });
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? url;
