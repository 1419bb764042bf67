// What npm derives from the lock file without using the network: the part of the lock file that a release needs, and
// the software bill of materials in CycloneDX format.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanEnvironment } from '../setup.mjs';
import type { Commit } from './commit.ts';
import type { Manifest } from './manifest.ts';

const NPM_MS_MAX = 120_000;
const NPM_BYTES_MAX = 64 * 2 ** 20;

/** The lock file, reduced to the packages that this manifest needs. */
export const createLock = (root: string, manifest: Manifest): string =>
  withPackageFolder(root, manifest, folder => readFileSync(join(folder, 'package-lock.json'), 'utf8'));

/**
 * The software bill of materials: all packages that this manifest depends on. Its serial number is derived from its
 * contents, and its timestamp is the time of the commit.
 */
export function createBillOfMaterials(root: string, manifest: Manifest, commit: Commit): string {
  const npmOutput = withPackageFolder(root, manifest, folder =>
    npm(folder, 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only', '--offline'),
  );
  const list = JSON.parse(npmOutput) as { serialNumber?: string; metadata: Record<string, unknown> };
  delete list.serialNumber;
  list.metadata.timestamp = commit.at.toISOString();
  list.metadata.properties = [{ name: 'commit', value: commit.id }];
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(list))}`;
  return `${JSON.stringify({ ...list, serialNumber }, null, 2)}\n`;
}

/** Returns a UUID of version 8 that is made from the SHA-256 digest of the text. */
function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Calls `read` with a folder that has the manifest and its lock file. npm names the project after the folder. */
function withPackageFolder(root: string, manifest: Manifest, read: (folder: string) => string): string {
  const temporaryFolder = mkdtempSync(join(tmpdir(), 'berth-release-'));
  try {
    const folder = join(temporaryFolder, manifest.name);
    mkdirSync(folder);
    copyFileSync(join(root, 'package-lock.json'), join(folder, 'package-lock.json'));
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    npm(folder, 'install', '--package-lock-only', '--offline', '--ignore-scripts', '--no-audit', '--no-fund');
    return read(folder);
  } finally {
    rmSync(temporaryFolder, { recursive: true, force: true });
  }
}

function npm(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('npm', [...args, '--loglevel=error'], {
    cwd,
    env: cleanEnvironment(process.env),
    encoding: 'utf8',
    timeout: NPM_MS_MAX,
    maxBuffer: NPM_BYTES_MAX,
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed: ${error?.message ?? stderr}`);
  return stdout;
}
