// Serves built web files (console, docs site, live view, pages for consumers). The files are listed once and looked up
// by exact path, so that no path can leave the folder. A file is read when it is first requested, because all files
// together are 11 MB, and then stays in memory. A caller that accepts a compressed variant gets it, if there is one.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
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
  readonly #root: string;
  readonly #paths: ReadonlySet<string>;
  readonly #files = new Map<string, WebFile>();

  /** Opens the build to serve. `folder` contains the builds, and its file `current` names that build. */
  static read(folder: string, part: 'console' | 'docs' | 'live-view' | 'consumer'): WebFiles | undefined {
    const currentFile = join(folder, 'current');
    if (!existsSync(currentFile)) return undefined;
    const root = join(folder, readFileSync(currentFile, 'utf8').trim(), part);
    return existsSync(root) ? WebFiles.of(root) : undefined;
  }

  /** Serves all files of known types in the folder. */
  static of(root: string): WebFiles {
    return new WebFiles(root);
  }

  private constructor(root: string) {
    this.#root = root;
    this.#paths = pathsIn(root);
  }

  has(path: string): boolean {
    return this.#paths.has(path) && contentTypeOf(path) !== undefined;
  }

  /** Sends a file. With `isImmutable`, browsers may cache it forever, because its name contains its digest. */
  send(path: string, request: FastifyRequest, reply: FastifyReply, isImmutable: boolean): FastifyReply {
    const file = this.#file(path);
    if (!file) throw new Error(`${path} is not one of the built files`);
    reply.headers({
      etag: file.etag,
      vary: 'accept-encoding',
      'cache-control': isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
    const { bytes, encoding } = encodedFor(file, request.headers['accept-encoding'] ?? '');
    if (encoding) reply.header('content-encoding', encoding);
    return reply.type(file.type).send(bytes);
  }

  #file(path: string): WebFile | undefined {
    const cachedFile = this.#files.get(path);
    const type = contentTypeOf(path);
    if (cachedFile || type === undefined || !this.#paths.has(path)) return cachedFile;
    const readIfPresent = (name: string): Buffer | undefined =>
      this.#paths.has(name) ? readFileSync(join(this.#root, name)) : undefined;
    const plain = readFileSync(join(this.#root, path));
    const [br, gzip] = [readIfPresent(`${path}.br`), readIfPresent(`${path}.gz`)];
    const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
    const file = { type, etag, plain, ...(br ? { br } : {}), ...(gzip ? { gzip } : {}) };
    this.#files.set(path, file);
    return file;
  }
}

export const notBuiltFault = (asset: string) =>
  fault('route_not_found', `The ${asset} has not been built.`, {
    advice: 'Start the service with `npm start`, which builds it.',
  });

const contentTypeOf = (path: string): string | undefined => CONTENT_TYPES[extname(path)];

const pathsIn = (root: string): ReadonlySet<string> =>
  new Set(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => relative(root, join(entry.parentPath, entry.name))),
  );

function encodedFor({ br, gzip, plain }: WebFile, acceptEncoding: string): { bytes: Buffer; encoding?: string } {
  const accepts = (coding: string): boolean =>
    new RegExp(`\\b${coding}\\b(?!\\s*;\\s*q=0(?:\\.0*)?\\s*(?:,|$))`).test(acceptEncoding);
  if (br && accepts('br')) return { bytes: br, encoding: 'br' };
  if (gzip && accepts('gzip')) return { bytes: gzip, encoding: 'gzip' };
  return { bytes: plain };
}
