// Serves built web files (console, docs site, live view), which are read into memory once and found by exact path, so that no
// path can leave the folder. Sends the compressed variant that the caller accepts.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.avif': 'image/avif',
  '.md': 'text/markdown; charset=utf-8',
};

interface WebFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly br?: Buffer;
  readonly gzip?: Buffer;
}

export class WebFiles {
  readonly #files: ReadonlyMap<string, WebFile>;

  /** `folder` contains builds; its file `current` names the one to serve. */
  static read(folder: string, part: 'console' | 'docs' | 'live-view' | 'consumer'): WebFiles | undefined {
    const current = join(folder, 'current');
    if (!existsSync(current)) return undefined;
    const root = join(folder, readFileSync(current, 'utf8').trim(), part);
    return existsSync(root) ? WebFiles.of(root) : undefined;
  }

  /** All files with a known type in the folder. */
  static of(root: string): WebFiles {
    return new WebFiles(filesIn(root));
  }

  private constructor(files: ReadonlyMap<string, WebFile>) {
    this.#files = files;
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** Sends a file. With `immutable`, browsers may cache it forever, because its name contains its digest. */
  send(path: string, request: FastifyRequest, reply: FastifyReply, immutable: boolean): FastifyReply {
    const file = this.#files.get(path);
    if (!file) throw new Error(`${path} is not among the built files`);
    reply.headers({
      etag: file.etag,
      vary: 'accept-encoding',
      'cache-control': immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
    const { bytes, encoding } = encodedFor(file, request.headers['accept-encoding'] ?? '');
    if (encoding) reply.header('content-encoding', encoding);
    return reply.type(file.type).send(bytes);
  }
}

export const notBuilt = (what: string) =>
  fault('route_not_found', `The ${what} is not built in this checkout.`, {
    advice: 'Start the service with `npm start`, which builds it.',
  });

function filesIn(root: string): ReadonlyMap<string, WebFile> {
  const names = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath, entry.name)));
  const read = (name: string): Buffer | undefined =>
    names.includes(name) ? readFileSync(join(root, name)) : undefined;
  return new Map(
    names.flatMap(name => {
      const type = TYPES[extname(name)];
      const plain = type === undefined ? undefined : read(name);
      if (type === undefined || plain === undefined) return [];
      const [br, gzip] = [read(`${name}.br`), read(`${name}.gz`)];
      const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
      return [[name, { type, etag, plain, ...(br ? { br } : {}), ...(gzip ? { gzip } : {}) }] as const];
    }),
  );
}

function encodedFor({ br, gzip, plain }: WebFile, accepted: string): { bytes: Buffer; encoding?: string } {
  const accepts = (coding: string): boolean =>
    new RegExp(`\\b${coding}\\b(?!\\s*;\\s*q=0(?:\\.0+)?(?:,|$))`).test(accepted);
  if (br && accepts('br')) return { bytes: br, encoding: 'br' };
  if (gzip && accepts('gzip')) return { bytes: gzip, encoding: 'gzip' };
  return { bytes: plain };
}
