// Uploads, reads and deletes the extensions of an application, and deletes unused extensions automatically.
import { EXTENSIONS_PER_APPLICATION_MAX, type Extension } from '../../../contract/extensions.ts';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { ExtensionPackages } from '../../engines/extensions/packages.ts';
import type { ExtensionRow, ExtensionRows } from '../../engines/store/rows/extensions.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ApplicationId, type ExtensionId, isUuid, newId } from '../../kit/ids.ts';
import type { WorkLimiter } from '../../kit/work-limiter.ts';
import { limitReached, notFound } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';

/**
 * Time for which a file that no extension references is kept, because a session that was just created may still read
 * it.
 */
const FILE_GRACE_MS = 3_600_000;
const DAY_MS = 86_400_000;
const FORGET_BATCH_MAX = 500;
const FILE_NAME_CHARACTERS_MAX = 255;

export interface ExtensionsParts {
  readonly rows: ExtensionRows;
  readonly artifacts: Pick<Artifacts, 'stat' | 'putFile' | 'remove'>;
  readonly keyOf: (application: ApplicationId, checksum: string) => ArtifactKey;
  readonly packages: Pick<ExtensionPackages, 'inspect'>;
  readonly unpackLimiter: WorkLimiter;
  readonly clock: Clock;
  /** An extension that no session has used for this many days is deleted. */
  readonly unusedDays: number;
}

/** An uploaded file on local disk. When the file is stored, it is moved away from `path`. */
export interface IncomingPackage {
  readonly fileName: string;
  readonly path: string;
  readonly size: number;
  readonly checksum: string;
}

export class Extensions {
  readonly #parts: ExtensionsParts;

  constructor(parts: ExtensionsParts) {
    this.#parts = parts;
  }

  async upload(caller: AgentCaller, file: IncomingPackage): Promise<Extension> {
    const { packages, unpackLimiter, clock } = this.#parts;
    const owner = { application: caller.applicationId };
    const { name, version, manifestVersion, ownId } = await unpackLimiter.run(owner, () => packages.inspect(file.path));
    const now = clock.now();
    await this.#store(caller.applicationId, file, now);
    const row: ExtensionRow = {
      id: newId<ExtensionId>(now),
      applicationId: caller.applicationId,
      checksum: file.checksum,
      fileName: baseName(file.fileName),
      size: file.size,
      ...{ name, version, manifestVersion },
      ...(ownId === undefined ? {} : { ownId }),
      createdAt: now,
      usedAt: now,
    };
    await this.#insert(row);
    return viewOf(row);
  }

  async read(caller: AgentCaller, id: string): Promise<Extension> {
    const row = isUuid(id) ? await this.#parts.rows.get(caller.applicationId, id as ExtensionId) : undefined;
    if (!row) throw notFound('Extension', id);
    return viewOf(row);
  }

  /** Deletes an extension. Running sessions keep their copy. New sessions cannot use the extension. */
  async remove(caller: AgentCaller, id: string): Promise<void> {
    const isRemoved = isUuid(id) && (await this.#parts.rows.remove(caller.applicationId, id as ExtensionId));
    if (!isRemoved) throw notFound('Extension', id);
  }

  /** Deletes extensions that have not been used for `unusedDays` days, and files that no extension references. */
  async removeUnused(): Promise<{ forgotten: number; files: number }> {
    const { rows, artifacts, keyOf, clock, unusedDays } = this.#parts;
    const now = clock.now();
    const forgottenCount = await rows.forget(addMs(now, -unusedDays * DAY_MS), FORGET_BATCH_MAX);
    const remove = (application: ApplicationId, checksum: string): Promise<void> =>
      artifacts.remove([keyOf(application, checksum)]);
    let fileCount = 0;
    while (fileCount < FORGET_BATCH_MAX && (await rows.dropFile(addMs(now, -FILE_GRACE_MS), remove))) fileCount++;
    return { forgotten: forgottenCount, files: fileCount };
  }

  /**
   * Stores the file, unless a file with the same content is already stored. The row is written first, so that a file
   * never exists without a row.
   */
  async #store(application: ApplicationId, file: IncomingPackage, now: Date): Promise<void> {
    const { rows, artifacts, keyOf } = this.#parts;
    const key = keyOf(application, file.checksum);
    await rows.expectFile(application, file.checksum, now);
    if (!(await artifacts.stat(key))) await artifacts.putFile(key, file.path);
  }

  async #insert(row: ExtensionRow): Promise<void> {
    const outcome = await this.#parts.rows.insert(row, EXTENSIONS_PER_APPLICATION_MAX);
    if (outcome === 'limit_reached')
      throw limitReached('extensions in this application', EXTENSIONS_PER_APPLICATION_MAX);
  }
}

/** Some clients send the full local path as the file name. */
const baseName = (fileName: string): string =>
  (fileName.split(/[/\\]/).at(-1) ?? '').replace(/\p{Cc}/gu, '').slice(0, FILE_NAME_CHARACTERS_MAX) || 'extension.zip';

const viewOf = (row: ExtensionRow): Extension => ({
  id: row.id,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.createdAt.toISOString(),
  fileName: row.fileName,
  projectId: row.applicationId,
  name: row.name,
  version: row.version,
  manifestVersion: row.manifestVersion,
  size: row.size,
  checksum: row.checksum,
});
