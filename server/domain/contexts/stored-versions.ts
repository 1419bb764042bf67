// Reads and writes the stored objects of a context's versions. Determines for each object the data key and the name
// from which its encryption key is derived. A version may refer to the archive or the cookies of an earlier version,
// which are stored under the id of that earlier version.
import type { Readable } from 'node:stream';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { CookieList, Profiles, Seal, SealedProfile } from '../../engines/profiles/profiles.ts';
import type { ContextRow, RemovableVersion, StoredArchive } from '../../engines/store/rows/contexts.ts';
import type { ApplicationId, VersionId } from '../../kit/ids.ts';

type KeyOf = (application: ApplicationId, context: string, version: string) => ArtifactKey;

export interface StoredVersionsParts {
  readonly artifacts: Artifacts;
  readonly profiles: Profiles;
  readonly archiveKey: KeyOf;
  readonly cookiesKey: KeyOf;
}

/** A row refers to an object that does not exist. */
class VersionMissing extends Error {
  override readonly name = 'VersionMissing';
}

type ContextWithKey = Pick<ContextRow, 'id' | 'applicationId' | 'wrappedKey'>;

export class StoredVersions {
  readonly #parts: StoredVersionsParts;

  constructor(parts: StoredVersionsParts) {
    this.#parts = parts;
  }

  archiveSeal(context: ContextWithKey, versionId: VersionId): Promise<Seal> {
    return this.#parts.profiles.unwrapSeal(context, context.wrappedKey, `${context.id} ${versionId} archive`);
  }

  cookiesSeal(context: ContextWithKey, versionId: VersionId): Promise<Seal> {
    return this.#parts.profiles.unwrapSeal(context, context.wrappedKey, `${context.id} ${versionId} cookies`);
  }

  async openArchive(context: ContextWithKey, { versionId, checksum }: StoredArchive): Promise<SealedProfile> {
    const { artifacts, archiveKey } = this.#parts;
    const artifact = await artifacts.open(archiveKey(context.applicationId, context.id, versionId));
    if (!artifact) throw new VersionMissing(`the archive of version ${versionId} is missing`);
    return { body: artifact.body, checksum, seal: await this.archiveSeal(context, versionId) };
  }

  async openCookies(context: ContextWithKey, versionId: VersionId): Promise<CookieList> {
    const seal = await this.cookiesSeal(context, versionId);
    return this.#parts.profiles.openCookies(await this.#sealedCookies(context, versionId), seal);
  }

  /** Returns the cookies as JSON. */
  async openCookieText(context: ContextWithKey, versionId: VersionId): Promise<Buffer> {
    const seal = await this.cookiesSeal(context, versionId);
    return this.#parts.profiles.openCookieText(await this.#sealedCookies(context, versionId), seal);
  }

  async #sealedCookies(context: ContextWithKey, versionId: VersionId): Promise<Readable> {
    const { artifacts, cookiesKey } = this.#parts;
    const artifact = await artifacts.open(cookiesKey(context.applicationId, context.id, versionId));
    if (!artifact) throw new VersionMissing(`the cookies of version ${versionId} are missing`);
    return artifact.body;
  }

  /** Moves the file to storage. Safe to repeat. */
  async storeArchive(context: ContextWithKey, versionId: VersionId, file: string, signal: AbortSignal): Promise<void> {
    const { artifacts, archiveKey } = this.#parts;
    await artifacts.putFile(archiveKey(context.applicationId, context.id, versionId), file, { signal });
  }

  async storeCookies(
    context: ContextWithKey,
    versionId: VersionId,
    sealed: Buffer,
    signal: AbortSignal,
  ): Promise<void> {
    const { artifacts, cookiesKey } = this.#parts;
    await artifacts.put(cookiesKey(context.applicationId, context.id, versionId), singleChunk(sealed), { signal });
  }

  async remove({ applicationId, contextId, archiveOf, cookiesOf }: RemovableVersion): Promise<void> {
    const { artifacts, archiveKey, cookiesKey } = this.#parts;
    await artifacts.remove([
      ...(archiveOf ? [archiveKey(applicationId, contextId, archiveOf)] : []),
      ...(cookiesOf ? [cookiesKey(applicationId, contextId, cookiesOf)] : []),
    ]);
  }

  /** Whether the error means that the stored data is damaged, so that another attempt would fail as well. */
  isDamage(error: unknown): boolean {
    return error instanceof VersionMissing || this.#parts.profiles.isDamage(error);
  }
}

async function* singleChunk(bytes: Buffer): AsyncGenerator<Buffer, void> {
  yield bytes;
}

/** A version saved by a session has the session's id, so that a repeated save writes the same objects. */
export const versionIdOfSession = (session: string): VersionId => session as VersionId;
