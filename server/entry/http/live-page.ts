// Serves the page of the live view. It may be embedded on any site. What a viewer may do depends on the token in the
// address, which is checked when the page opens its socket.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import type { Uploads } from '../../domain/files/uploads.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import type { LiveView } from '../../domain/live/live-view.ts';
import type { IncomingFiles } from './incoming-files.ts';
import { passToSessionOwner } from './to-owner.ts';
import type { WebFiles } from './web-files.ts';

const ASSETS_PREFIX = '/live-view/';
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  'frame-ancestors *',
].join('; ');

export interface LivePageParts {
  readonly live: Pick<LiveView, 'resolveUploader'>;
  readonly uploads: Pick<Uploads, 'allow' | 'upload'>;
  readonly incomingFiles: IncomingFiles;
  readonly forwarding: Forwarding;
}

export function serveLiveView(app: FastifyInstance, parts: LivePageParts, files: WebFiles | undefined): void {
  const requireFiles = (): WebFiles => {
    if (files) return files;
    throw fault('route_not_found', 'The live view has not been built.', {
      advice: 'Start the service with `npm start`, which builds it.',
    });
  };
  app.get('/v1/browsers/live/:id', async (request, reply) => {
    reply
      .headers({ 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' })
      .removeHeader('x-frame-options');
    return requireFiles().send('index.html', request, reply, false);
  });
  // An upload for a file chooser on the page, from the viewer who has control.
  const passToOwner = async (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    passToSessionOwner(String(Object(request.params).id), request, reply, parts.forwarding);
  app.post('/v1/browsers/live/:id/files', { config: { upload: true }, onRequest: passToOwner }, async request => {
    const { id, token } = { token: '', ...Object(request.query), ...Object(request.params) };
    const liveSession = await parts.live.resolveUploader(String(token), String(id));
    const sender = { applicationId: liveSession.applicationId };
    return parts.incomingFiles.receive(
      request,
      { application: liveSession.applicationId, session: liveSession.id },
      () => parts.uploads.allow(sender, liveSession.id),
      file => parts.uploads.upload(sender, liveSession.id, file),
    );
  });
  app.get(`${ASSETS_PREFIX}*`, async (request, reply) => {
    const path = (request.url.split('?', 1)[0] ?? '').slice(ASSETS_PREFIX.length);
    if (!path.startsWith('assets/') || !requireFiles().has(path))
      throw fault('route_not_found', 'The live view has no file at this path.', {
        advice: 'Load the live view again.',
      });
    return requireFiles().send(path, request, reply, true);
  });
}
