// Serves the reference and the OpenAPI document. Both are made once, when the server opens.
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { stringify } from 'yaml';
import { openApiDocument } from '../../../../contract/openapi.ts';
import { referencePage } from './page.ts';
import { policyFor } from './policy.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';

export interface DocsFacts {
  readonly publicUrl?: string;
  readonly version: string;
  readonly listen: { readonly host: string; readonly port: number };
}

export function serveDocs(app: FastifyInstance, { publicUrl, version, listen }: DocsFacts): void {
  const document = openApiDocument(version);
  const baseUrl = publicUrl ?? `http://${listen.host}:${listen.port}`;
  const yaml = stringify(document, { lineWidth: 120, aliasDuplicateObjects: false });
  const json = JSON.stringify(document);
  const page = referencePage({ baseUrl, version });
  const policy = { 'content-security-policy': policyFor({ style: STYLE, script: SCRIPT }) };
  for (const url of ['/docs', '/docs/']) serveText(app, url, 'text/html; charset=utf-8', page, policy);
  for (const url of ['/openapi.yaml', '/docs/openapi.yaml'])
    serveText(app, url, 'application/yaml; charset=utf-8', yaml);
  serveText(app, '/v1/browsers/openapi.json', 'application/json; charset=utf-8', json);
}

function serveText(
  app: FastifyInstance,
  url: string,
  type: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  app.get(url, async (request, reply) => {
    reply.headers({ ...headers, etag, 'cache-control': 'no-cache' });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(type).send(text);
  });
}
