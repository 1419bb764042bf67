// Packages of browser extensions: judged whole when they come, and unpacked into a box when a session needs one.
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, chown, lstat, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ArchivedFile, type ArchivePlace, eachFile } from './archive.ts';
import { openEnvelope } from './crx.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { refusal } from './refusal.ts';

const MANIFEST = 'manifest.json';
const MANIFEST_BYTES_MAX = 1024 ** 2;
/** Its folder in the box. */
const FOLDER = 'extensions';

export interface ExtensionFacts {
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  readonly hasServiceWorker: boolean;
  /** Where the package has a key of its own: Chromium's id of the extension, which otherwise follows from its folder. */
  readonly ownId?: string;
}

export class ExtensionPackages {
  readonly #scratch: string;

  /** `scratch`: a folder of ours for packages on their way. */
  constructor(scratch: string) {
    this.#scratch = scratch;
  }

  /** Takes away what a killed server left. */
  async recover(): Promise<void> {
    await rm(this.#scratch, { recursive: true, force: true });
  }

  /** Reads every byte of it. Throws what is wrong with it. */
  async inspect(path: string): Promise<ExtensionFacts> {
    const { archive, publicKey } = await openEnvelope(path);
    return factsOf(await manifestOf(archive), publicKey);
  }

  /** Unpacks it to `extensions/<name>` of a box that nobody has spoken to yet. */
  async place(body: Readable, box: string, name: string, signal: AbortSignal): Promise<ExtensionFacts> {
    await mkdir(this.#scratch, { recursive: true, mode: 0o700 });
    const path = join(this.#scratch, randomUUID());
    try {
      await pipeline(body, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
      const { archive, publicKey } = await openEnvelope(path);
      return factsOf(await unpack(archive, await makeFolder(box, name), publicKey, signal), publicKey);
    } finally {
      await rm(path, { force: true });
    }
  }

  folderIn(box: string, name: string): string {
    return join(box, FOLDER, name);
  }
}

// ---- inspecting ------------------------------------------------------------------------------------------------------

async function manifestOf(archive: ArchivePlace): Promise<Manifest> {
  let manifest: Manifest | undefined;
  let elsewhere: string | undefined;
  await eachFile(archive, async file => {
    if (isManifest(file)) manifest = readManifest(await small(await file.read()));
    else if (!file.isFolder) {
      if (file.path.length === 2 && file.path[1] === MANIFEST) elsewhere ??= file.path[0];
      for await (const _ of await file.read()); // Counted and checked on the way.
    }
  });
  if (manifest) return manifest;
  if (elsewhere !== undefined)
    throw refusal(
      'manifest_not_at_root',
      `${MANIFEST} stands in the folder ${JSON.stringify(elsewhere)}`,
      'Pack the contents of that folder, not the folder.',
    );
  throw refusal('manifest_missing', `it has no ${MANIFEST}`, 'Put one at its root.');
}

async function small(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MANIFEST_BYTES_MAX)
      throw refusal(
        'manifest_not_json',
        `${MANIFEST} has more than ${MANIFEST_BYTES_MAX} bytes`,
        'Correct the manifest.',
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const isManifest = ({ path, isFolder }: ArchivedFile): boolean =>
  !isFolder && path.length === 1 && path[0] === MANIFEST;

function factsOf(
  { name, version, manifestVersion, hasServiceWorker, members }: Manifest,
  signer?: Buffer,
): ExtensionFacts {
  const key = signer ?? (typeof members.key === 'string' ? Buffer.from(members.key, 'base64') : undefined);
  return { name, version, manifestVersion, hasServiceWorker, ...(key ? { ownId: idOf(key) } : {}) };
}

/** Half of the key's digest, in letters from a to p. */
const idOf = (publicKey: Buffer): string =>
  createHash('sha256')
    .update(publicKey)
    .digest('hex')
    .slice(0, 32)
    .replace(/./g, digit => String.fromCharCode(97 + Number.parseInt(digit, 16)));

// ---- unpacking -------------------------------------------------------------------------------------------------------

/** Ours to write and the box's to read; only the folder itself is the box's, because Chromium puts its own notes there. */
async function makeFolder(box: string, name: string): Promise<string> {
  const parent = join(box, FOLDER);
  await mkdir(parent).catch(ignoreExisting);
  await chmod(parent, 0o755);
  const folder = join(parent, name);
  await mkdir(folder);
  await chmod(folder, 0o755);
  const { uid } = await lstat(box);
  if (uid !== process.getuid?.()) await chown(folder, uid, uid);
  return folder;
}

async function unpack(
  archive: ArchivePlace,
  folder: string,
  signer: Buffer | undefined,
  signal: AbortSignal,
): Promise<Manifest> {
  let manifest: Manifest | undefined;
  const made = new Set<string>();
  await eachFile(archive, async file => {
    signal.throwIfAborted();
    await makeFolders(folder, file.isFolder ? file.path : file.path.slice(0, -1), made);
    if (file.isFolder) return;
    const path = join(folder, ...file.path);
    if (isManifest(file)) {
      const bytes = await small(await file.read());
      manifest = readManifest(bytes);
      await writeFile(path, signer ? withKey(manifest, signer) : bytes, { flag: 'wx', mode: 0o644 });
    } else await pipeline(await file.read(), createWriteStream(path, { flags: 'wx', mode: 0o644 }), { signal });
    await chmod(path, 0o644);
  });
  if (!manifest) throw refusal('manifest_missing', `it has no ${MANIFEST}`, 'Put one at its root.');
  return manifest;
}

async function makeFolders(folder: string, path: readonly string[], made: Set<string>): Promise<void> {
  for (let depth = 1; depth <= path.length; depth++) {
    const inner = join(folder, ...path.slice(0, depth));
    if (made.has(inner)) continue;
    made.add(inner);
    await mkdir(inner);
    await chmod(inner, 0o755);
  }
}

/** So that it has the id that its envelope gives it. */
const withKey = ({ members }: Manifest, signer: Buffer): string =>
  JSON.stringify({ ...members, key: signer.toString('base64') });

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error;
}
