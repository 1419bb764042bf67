// Serves the reference and the OpenAPI document. All are made once: the YAML for the first who asks, the others when the
// server opens.
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../../../../contract/openapi.ts';
import { fault } from '../../../domain/faults.ts';
import type { Workers } from '../../../kit/worker-pool.ts';
import type { WebFiles } from '../web-files.ts';
import { referencePage } from './page.ts';
import { policyFor } from './policy.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';
import { OPENAPI_YAML } from './yaml-job.ts';

export interface DocsFacts {
  readonly publicUrl?: string;
  readonly version: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly workers: Workers;
}

export function serveDocs(
  app: FastifyInstance,
  { publicUrl, version, listen, workers }: DocsFacts,
  site?: WebFiles,
): void {
  const baseUrl = publicUrl ?? `http://${listen.host}:${listen.port}`;
  const json = tagged(JSON.stringify(openApiDocument(version)));
  const page = tagged(referencePage({ baseUrl, version }));
  const policy = { 'content-security-policy': policyFor({ style: STYLE, script: SCRIPT }) };
  // The site's start is at /docs; where it is not built, the reference is all there is.
  for (const url of site ? ['/docs/api'] : ['/docs', '/docs/', '/docs/api'])
    serveText(app, url, 'text/html; charset=utf-8', () => page, policy);
  if (site) serveSite(app, site);
  const yaml = madeOnce(async () => tagged(await workers.run(OPENAPI_YAML, version, { of: OPENAPI_YAML.name })));
  for (const url of ['/openapi.yaml', '/docs/openapi.yaml'])
    serveText(app, url, 'application/yaml; charset=utf-8', yaml);
  serveText(app, '/v1/browsers/openapi.json', 'application/json; charset=utf-8', () => json);
}

/** Asks again where it failed. */
function madeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch(error => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

const SITE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Every page of the site is a file `name/index.html`, asked for without its slash. */
function serveSite(app: FastifyInstance, site: WebFiles): void {
  for (const url of ['/docs', '/docs/*'])
    app.get(url, async (request, reply) => {
      const path = (request.url.split('?', 1)[0] ?? '').slice('/docs'.length).replace(/^\/|\/$/g, '');
      const found = [path, path === '' ? 'index.html' : `${path}/index.html`].find(one => site.has(one));
      if (found === undefined)
        throw fault('route_not_found', `There is no page at ${request.url}.`, { advice: 'Begin at /docs.' });
      reply.header('content-security-policy', SITE_POLICY);
      return site.send(found, request, reply, path.startsWith('assets/'));
    });
}

interface Tagged {
  readonly text: string;
  readonly etag: string;
}

const tagged = (text: string): Tagged => ({
  text,
  etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`,
});

function serveText(
  app: FastifyInstance,
  url: string,
  type: string,
  read: () => Tagged | Promise<Tagged>,
  headers: Readonly<Record<string, string>> = {},
): void {
  app.get(url, async (request, reply) => {
    const { text, etag } = await read();
    reply.headers({ ...headers, etag, 'cache-control': 'no-cache' });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(type).send(text);
  });
}
