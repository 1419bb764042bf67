// Serves the docs site and the OpenAPI document.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../../../contract/openapi.ts';
import { fault } from '../../domain/faults.ts';
import { refuseOtherMethods } from './other-methods.ts';
import { notBuiltFault, type WebFiles } from './web-files.ts';

/** Generated from the contract. `npm run check` verifies that it is up to date. */
const OPENAPI_YAML = new URL('../../../contract/generated/openapi.yaml', import.meta.url);

const SITE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Served to browsers that request a page that does not exist. Programs get the error body. */
const NOT_FOUND_PAGE = '404.html';

export function serveDocs(app: FastifyInstance, version: string, siteFiles: WebFiles | undefined): void {
  serveSite(app, siteFiles);
  const yaml = memoize(() => readFileSync(OPENAPI_YAML, 'utf8'));
  for (const url of ['/openapi.yaml', '/docs/openapi.yaml'])
    serveText(app, url, 'application/yaml; charset=utf-8', yaml);
  const json = memoize(() => JSON.stringify(openApiDocument(version)));
  serveText(app, '/v1/browsers/openapi.json', 'application/json; charset=utf-8', json);
}

/** Every page of the site is a file `name/index.html`, requested without the trailing slash. */
function serveSite(app: FastifyInstance, siteFiles: WebFiles | undefined): void {
  for (const url of ['/docs', '/docs/*'])
    app.get(url, async (request, reply) => {
      if (!siteFiles) throw notBuiltFault('docs site');
      const path = (request.url.split('?', 1)[0] ?? '').slice('/docs'.length).replace(/^\/|\/$/g, '');
      const filePath = [path, path === '' ? 'index.html' : `${path}/index.html`].find(one => siteFiles.has(one));
      reply.header('content-security-policy', SITE_POLICY);
      if (filePath === undefined && siteFiles.has(NOT_FOUND_PAGE) && request.headers.accept?.includes('text/html'))
        return siteFiles.send(NOT_FOUND_PAGE, request, reply.code(404), false);
      if (filePath === undefined)
        throw fault('route_not_found', `There is no page at ${request.url}.`, { advice: 'Start at /docs.' });
      return siteFiles.send(filePath, request, reply, path.startsWith('assets/'));
    });
}

interface Text {
  readonly text: string;
  readonly etag: string;
}

/** Creates the text when it is first requested, because most servers never receive a request for it. */
function memoize(build: () => string): () => Text {
  let memo: Text | undefined;
  return () => {
    if (memo === undefined) {
      const text = build();
      memo = { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
    }
    return memo;
  };
}

function serveText(app: FastifyInstance, url: string, type: string, textOf: () => Text): void {
  refuseOtherMethods(app, url, new Set(['GET']));
  app.get(url, async (request, reply) => {
    const { text, etag } = textOf();
    reply.headers({ etag, 'cache-control': 'no-cache' });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(type).send(text);
  });
}
