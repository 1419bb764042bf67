// The format of a backup: a zip archive whose entries have the paths of the data folder. The last entry is
// `manifest.json`, which lists the others. The comment at the end of the archive contains the version of the format,
// and the SHA-256 digest of all bytes before the digest.
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { Fault } from '../../kit/fault.ts';
import { parseJson } from '../../kit/foreign.ts';

export const FORMAT_VERSION = 1;
export const MANIFEST_NAME = 'manifest.json';
export const ENTRIES_MAX = 2_000_000;
export const MANIFEST_BYTES_MAX = 512 * 1024 ** 2;
export const DIGEST_CHARACTERS = 64;
const PATH_BYTES_MAX = 1024;
const DEPTH_MAX = 16;

/** The top-level names in a data folder that a backup may contain. Sessions, sockets and locks are not included. */
const TOP_LEVEL_NAMES = new Set([
  ...['pg', 'artifacts', 'staging', 'recordings'],
  ...['secret', 'host-id', 'master-key', 'audit-heads'],
]);
const PART = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/;

const SHA256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Path = Type.String({ minLength: 1, maxLength: PATH_BYTES_MAX });
const ACCESS_FIELDS = { mode: Type.Integer({ minimum: 0, maximum: 0o777 }), uid: Count, gid: Count } as const;
const NO_EXTRA_MEMBERS = { additionalProperties: false } as const;

const Folder = Type.Object({ path: Path, ...ACCESS_FIELDS }, NO_EXTRA_MEMBERS);
const File = Type.Object({ path: Path, ...ACCESS_FIELDS, size: Count, sha256: SHA256 }, NO_EXTRA_MEMBERS);
const ManifestSchema = Type.Object(
  {
    format: Type.Literal(FORMAT_VERSION),
    version: Type.String({ minLength: 1, maxLength: 100 }),
    createdAt: Type.String({ format: 'date-time', maxLength: 40 }),
    database: Type.Union([
      Type.Object(
        { kind: Type.Literal('embedded'), major: Count, migration: Type.String({ maxLength: 200 }) },
        NO_EXTRA_MEMBERS,
      ),
      Type.Object({ kind: Type.Literal('elsewhere') }, NO_EXTRA_MEMBERS),
    ]),
    files: Type.Union([Type.Literal('disk'), Type.Literal('s3')]),
    owner: Type.Object(ACCESS_FIELDS, NO_EXTRA_MEMBERS),
    folders: Type.Array(Folder, { maxItems: ENTRIES_MAX }),
    entries: Type.Array(File, { maxItems: ENTRIES_MAX }),
  },
  NO_EXTRA_MEMBERS,
);

export type Manifest = Static<typeof ManifestSchema>;
export type FolderEntry = Static<typeof Folder>;
export type FileEntry = Static<typeof File>;
/** The part of the manifest that is known before the files have been added. */
export type ManifestHead = Omit<Manifest, 'format' | 'folders' | 'entries'>;

/** @throws Fault `backup_damaged` unless the text is a manifest whose paths stay in the data folder and are unique. */
export function readManifest(text: string): Manifest {
  const manifest = parseJson(text);
  if (!Value.Check(ManifestSchema, manifest)) throw damagedBackup('its manifest is not valid');
  const seenPaths = new Set<string>();
  for (const { path } of [...manifest.folders, ...manifest.entries]) {
    if (!isSafePath(path))
      throw damagedBackup(
        `its manifest lists ${JSON.stringify(path.slice(0, 120))}, which is not a path in a data folder`,
      );
    if (seenPaths.has(path)) throw damagedBackup(`its manifest lists ${path} twice`);
    seenPaths.add(path);
  }
  const folders = new Set(manifest.folders.map(({ path }) => path));
  for (const { path } of [...manifest.folders, ...manifest.entries]) {
    const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    if (parent !== '' && !folders.has(parent)) throw damagedBackup(`its manifest does not list the folder of ${path}`);
  }
  return manifest;
}

/**
 * Whether the path is relative, has no `.`, `..` or empty parts, and begins with a top-level name that a backup may
 * contain.
 */
function isSafePath(path: string): boolean {
  const parts = path.split('/');
  return parts.length <= DEPTH_MAX && TOP_LEVEL_NAMES.has(parts[0] ?? '') && parts.every(part => PART.test(part));
}

export const archiveComment = (digest: string): string => `berth-backup ${FORMAT_VERSION} ${digest}`;
/** The placeholder in the comment while the archive is written. The digest replaces it at the end. */
export const DIGEST_PLACEHOLDER = '0'.repeat(DIGEST_CHARACTERS);
/** The maximum size of the comment at the end of the archive. */
export const TRAILER_BYTES_MAX = 100;

/** Returns the version and the digest at the end of a backup. Returns undefined for any other file. */
export function readTrailer(tail: string): { readonly format: number; readonly digest: string } | undefined {
  const [, format, digest] = /berth-backup (\d{1,6}) ([0-9a-f]{64})$/.exec(tail) ?? [];
  return format && digest ? { format: Number(format), digest } : undefined;
}

export const damagedBackup = (problem: string): Fault =>
  new Fault('backup_damaged', `The backup is damaged: ${problem}.`, {
    advice: 'Nothing was restored. Restore from another backup.',
  });
