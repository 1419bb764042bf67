// Packages of browser extensions: checked completely when they are uploaded, and unpacked into a box for a session.
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, chown, lstat, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ArchivedFile, type ArchiveLocation, forEachFile } from './archive.ts';
import { openEnvelope } from './crx.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { refusal } from './refusal.ts';

const MANIFEST_NAME = 'manifest.json';
const MANIFEST_BYTES_MAX = 1024 ** 2;
/** The folder of extensions in the box. */
const EXTENSIONS_FOLDER = 'extensions';

export interface ExtensionInfo {
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  readonly hasServiceWorker: boolean;
  /**
   * The id that Chromium derives from the key of the package. Undefined if the package has no key: the id then depends
   * on the folder.
   */
  readonly ownId?: string;
}

export class ExtensionPackages {
  readonly #scratchFolder: string;

  /** `scratch`: a folder for temporary copies of packages. */
  constructor(scratch: string) {
    this.#scratchFolder = scratch;
  }

  /** Removes files that a killed server left behind. */
  async recover(): Promise<void> {
    await rm(this.#scratchFolder, { recursive: true, force: true });
  }

  /** Reads the whole package. Throws a Fault with the reason if the package cannot be used. */
  async inspect(path: string): Promise<ExtensionInfo> {
    const { archive, publicKey } = await openEnvelope(path);
    return infoOf(await manifestOf(archive), publicKey);
  }

  /** Unpacks the package to `extensions/<name>` of a box to which no client has connected yet. */
  async unpack(body: Readable, box: string, name: string, signal: AbortSignal): Promise<ExtensionInfo> {
    await mkdir(this.#scratchFolder, { recursive: true, mode: 0o700 });
    const path = join(this.#scratchFolder, randomUUID());
    try {
      await pipeline(body, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
      const { archive, publicKey } = await openEnvelope(path);
      return infoOf(await unpack(archive, await makeFolder(box, name), publicKey, signal), publicKey);
    } finally {
      await rm(path, { force: true });
    }
  }

  folderIn(box: string, name: string): string {
    return join(box, EXTENSIONS_FOLDER, name);
  }
}

// ---- inspecting -----------------------------------------------------------------------------------------------------

async function manifestOf(archive: ArchiveLocation): Promise<Manifest> {
  let manifest: Manifest | undefined;
  let folderWithManifest: string | undefined;
  await forEachFile(archive, async file => {
    if (isManifest(file)) manifest = readManifest(await readManifestBytes(await file.read()));
    else if (!file.isFolder) {
      if (file.path.length === 2 && file.path[1] === MANIFEST_NAME) folderWithManifest ??= file.path[0];
      for await (const _ of await file.read()); // Reading counts the bytes and checks the checksum.
    }
  });
  if (manifest) return manifest;
  if (folderWithManifest !== undefined)
    throw refusal(
      'manifest_not_at_root',
      `${MANIFEST_NAME} is in the folder ${JSON.stringify(folderWithManifest)}`,
      'Pack the contents of that folder, not the folder itself.',
    );
  throw refusal('manifest_missing', `it has no ${MANIFEST_NAME}`, `Put a ${MANIFEST_NAME} at the root of the package.`);
}

async function readManifestBytes(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MANIFEST_BYTES_MAX)
      throw refusal(
        'manifest_not_json',
        `${MANIFEST_NAME} has more than ${MANIFEST_BYTES_MAX} bytes`,
        'Shorten the manifest.',
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const isManifest = ({ path, isFolder }: ArchivedFile): boolean =>
  !isFolder && path.length === 1 && path[0] === MANIFEST_NAME;

function infoOf(
  { name, version, manifestVersion, hasServiceWorker, members }: Manifest,
  signerKey?: Buffer,
): ExtensionInfo {
  const key = signerKey ?? (typeof members.key === 'string' ? Buffer.from(members.key, 'base64') : undefined);
  return { name, version, manifestVersion, hasServiceWorker, ...(key ? { ownId: idOf(key) } : {}) };
}

/**
 * Returns Chromium's id for the key: the first half of the key's SHA-256, with each hexadecimal digit written as a
 * letter from a to p.
 */
const idOf = (publicKey: Buffer): string =>
  createHash('sha256')
    .update(publicKey)
    .digest('hex')
    .slice(0, 32)
    .replace(/./g, digit => String.fromCharCode(97 + Number.parseInt(digit, 16)));

// ---- unpacking ------------------------------------------------------------------------------------------------------

/** The box's user may only read the files, but owns the top folder, because Chromium writes metadata to it. */
async function makeFolder(box: string, name: string): Promise<string> {
  const parent = join(box, EXTENSIONS_FOLDER);
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
  archive: ArchiveLocation,
  folder: string,
  signerKey: Buffer | undefined,
  signal: AbortSignal,
): Promise<Manifest> {
  let manifest: Manifest | undefined;
  const createdFolders = new Set<string>();
  await forEachFile(archive, async file => {
    signal.throwIfAborted();
    await makeFolders(folder, file.isFolder ? file.path : file.path.slice(0, -1), createdFolders);
    if (file.isFolder) return;
    const path = join(folder, ...file.path);
    if (isManifest(file)) {
      const bytes = await readManifestBytes(await file.read());
      manifest = readManifest(bytes);
      await writeFile(path, signerKey ? manifestWithKey(manifest, signerKey) : bytes, { flag: 'wx', mode: 0o644 });
    } else await pipeline(await file.read(), createWriteStream(path, { flags: 'wx', mode: 0o644 }), { signal });
    await chmod(path, 0o644);
  });
  if (!manifest)
    throw refusal(
      'manifest_missing',
      `it has no ${MANIFEST_NAME}`,
      `Put a ${MANIFEST_NAME} at the root of the package.`,
    );
  return manifest;
}

async function makeFolders(folder: string, path: readonly string[], createdFolders: Set<string>): Promise<void> {
  for (let depth = 1; depth <= path.length; depth++) {
    const innerFolder = join(folder, ...path.slice(0, depth));
    if (createdFolders.has(innerFolder)) continue;
    createdFolders.add(innerFolder);
    await mkdir(innerFolder);
    await chmod(innerFolder, 0o755);
  }
}

/** Adds the key of the .crx header to the manifest, so that the extension has the id that follows from this key. */
const manifestWithKey = ({ members }: Manifest, signerKey: Buffer): string =>
  JSON.stringify({ ...members, key: signerKey.toString('base64') });

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error;
}
