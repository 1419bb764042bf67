// The API operations on contexts. The code that sessions use is in context-watcher.ts and saver.ts.
import {
  CONTEXT_LIST_MAX,
  CONTEXT_NAME_CHARACTERS_MAX,
  CONTEXTS_PER_APPLICATION_MAX,
  type Context,
  type ContextQuery,
  type ContextVersion,
  type CreateContext,
  type ExportQuery,
  type ForkContext,
  type StorageState,
} from '../../../contract/contexts.ts';
import type { PackedProfile, Profiles, Staging } from '../../engines/profiles/profiles.ts';
import type {
  ContextRow,
  ContextRows,
  VersionFacts,
  VersionRow,
  VersionSource,
} from '../../engines/store/rows/contexts.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ContextId, isUuid, newId, type VersionId } from '../../kit/ids.ts';
import { WorkLimiter, type WorkLimits } from '../../kit/work-limiter.ts';
import { assertProject, fault, invalidRequest, limitReached, notFound } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { retentionFields } from './earlier-versions.ts';
import { type ExportedState, type Exports, StateDamaged } from './export.ts';
import { importedCookies } from './storage-state.ts';
import type { StoredVersions } from './stored-versions.ts';

/** Time after which a fork or import that was interrupted is removed. */
const INTERRUPTED_WRITE_RETENTION_MS = 3_600_000;

export interface ContextsParts {
  readonly rows: ContextRows;
  readonly storedVersions: StoredVersions;
  readonly profiles: Profiles;
  readonly exports: Exports;
  readonly clock: Clock;
  /** Wakes the task that removes deleted versions. */
  readonly trigger: () => void;
}

/** The operations that HTTP handlers may call. */
export type ContextMethods = Pick<Contexts, keyof Contexts>;

type StoreVersion = (id: VersionId, staging: Staging) => Promise<Omit<VersionFacts, 'source'>>;

/** Forks and imports are limited because each reads and writes a whole context. */
const CREATION_LIMITS: WorkLimits = {
  name: 'fork or import a context',
  runningMax: { session: 2, application: 2, process: 8 },
  waitingMax: 64,
  withinMs: 30_000,
};

export class Contexts {
  readonly #parts: ContextsParts;
  readonly #creationLimiter = new WorkLimiter(CREATION_LIMITS);

  constructor(parts: ContextsParts) {
    this.#parts = parts;
  }

  async create(caller: AgentCaller, { projectId, name }: CreateContext): Promise<Context> {
    assertProject(caller.applicationId, projectId);
    return viewOf(await this.#insert(caller, name));
  }

  async list(caller: AgentCaller, query: ContextQuery): Promise<{ contexts: Context[]; nextBefore?: string }> {
    const limit = query.limit ?? CONTEXT_LIST_MAX;
    const beforeOption = query.before === undefined ? {} : { before: query.before as ContextId };
    const rows = await this.#parts.rows.list(caller.applicationId, { limit: limit + 1, ...beforeOption });
    const lastRow = rows[limit - 1];
    const contexts = rows.slice(0, limit).map(viewOf);
    return rows.length > limit && lastRow ? { contexts, nextBefore: lastRow.id } : { contexts };
  }

  async read(caller: AgentCaller, id: string): Promise<Context> {
    return viewOf(await this.#requireRow(caller, id));
  }

  async destroy(caller: AgentCaller, id: string): Promise<void> {
    const { id: contextId } = await this.#requireRow(caller, id);
    const isDestroyed = await this.#parts.rows.destroy(caller.applicationId, contextId, this.#parts.clock.now());
    if (!isDestroyed) throw notFound('Context', id);
    this.#parts.trigger();
  }

  async versions(caller: AgentCaller, id: string): Promise<ContextVersion[]> {
    const row = await this.#requireRow(caller, id);
    const now = this.#parts.clock.now();
    const versions = await this.#parts.rows.versions(caller.applicationId, row.id);
    return versions.filter(({ expiresAt }) => !expiresAt || expiresAt > now).map(one => versionView(one, row));
  }

  async restore(caller: AgentCaller, id: string, number: number): Promise<Context> {
    const row = await this.#requireRow(caller, id);
    const version = await this.#requireVersion(row, number);
    const { rows, clock } = this.#parts;
    const restoredId = newId<VersionId>(clock.now());
    const { archive, cookiesOf, partial, sizeBytes } = version;
    const facts = { source: 'restore', partial, sizeBytes, ...storedObjectsOf({ archive, cookiesOf }) } as const;
    const keptVersion = await rows.keep(row.applicationId, row.id, {
      ...retentionFields(clock.now()),
      id: restoredId,
      facts,
    });
    return viewOf(requireContext(keptVersion?.context, id));
  }

  async fork(caller: AgentCaller, id: string, request: ForkContext, signal: AbortSignal): Promise<Context> {
    const row = await this.#requireRow(caller, id);
    const version =
      request.version === undefined && row.version === 0 ? undefined : await this.#requireVersion(row, request.version);
    const copy = await this.#insert(caller, request.name);
    if (!version) return viewOf(copy);
    const { rows, clock } = this.#parts;
    try {
      return await this.#createVersion(copy, 'fork', signal, (id, staging) =>
        this.#copy(row, version, copy, { id, staging, signal }),
      );
    } catch (error) {
      await rows.destroy(copy.applicationId, copy.id, clock.now());
      throw this.#unreadableError(error, version);
    }
  }

  async exportState(caller: AgentCaller, id: string, query: ExportQuery): Promise<ExportedState> {
    const row = await this.#requireRow(caller, id);
    const version =
      query.version === undefined && row.version === 0 ? undefined : await this.#requireVersion(row, query.version);
    try {
      return await this.#parts.exports.exportVersion(row, version);
    } catch (error) {
      throw version ? this.#unreadableError(error, version) : error;
    }
  }

  async importState(caller: AgentCaller, id: string, state: StorageState, signal: AbortSignal): Promise<Context> {
    const row = await this.#requireRow(caller, id);
    const cookies = importedCookies(state.cookies);
    const origins = state.origins.map(({ origin, localStorage }, index) => {
      if (!isOrigin(origin)) throw badOrigin(index, origin);
      return { origin, items: new Map(localStorage.map(({ name, value }) => [name, value])) };
    });
    const { profiles, storedVersions, clock } = this.#parts;
    return this.#createVersion(row, 'import', signal, async (id, staging) => {
      const sealedCookies = await profiles.sealCookies(cookies, await storedVersions.cookiesSeal(row, id));
      await storedVersions.storeCookies(row, id, sealedCookies, signal);
      const seal = await storedVersions.archiveSeal(row, id);
      const packedArchive = await profiles.packLocalStorage(origins, staging, seal, { now: clock.now(), signal });
      return { ...(await this.#storePacked(row, id, staging, packedArchive, signal)), partial: false, cookiesOf: id };
    });
  }

  async #insert(caller: AgentCaller, name: string | undefined): Promise<ContextRow> {
    const { rows, profiles, clock } = this.#parts;
    const now = clock.now();
    const id = newId<ContextId>(now);
    const nameField = name === undefined ? {} : { name: cleanName(name) };
    const row = {
      id,
      applicationId: caller.applicationId,
      ...nameField,
      wrappedKey: await profiles.createKey({ id, applicationId: caller.applicationId }),
      createdAt: now,
    };
    const outcome = await rows.insert(row, CONTEXTS_PER_APPLICATION_MAX);
    if (outcome === 'limit_reached') throw limitReached('contexts in this application', CONTEXTS_PER_APPLICATION_MAX);
    if (outcome === 'name_taken') throw nameTaken(nameField.name ?? '');
    return { ...row, version: 0, sizeBytes: 0, updatedAt: now };
  }

  /**
   * Creates a version with its own stored objects. The objects are stored first, and are removed if the row is not
   * committed.
   */
  #createVersion(
    row: ContextRow,
    source: VersionSource,
    signal: AbortSignal,
    storeObjects: StoreVersion,
  ): Promise<Context> {
    const owner = { application: row.applicationId };
    return this.#creationLimiter.run(owner, () => this.#createVersionNow(row, source, signal, storeObjects), signal);
  }

  async #createVersionNow(
    row: ContextRow,
    source: VersionSource,
    signal: AbortSignal,
    storeObjects: StoreVersion,
  ): Promise<Context> {
    const { rows, profiles, clock, trigger } = this.#parts;
    const id = newId<VersionId>(clock.now());
    const reservation = { id, source, now: clock.now(), until: addMs(clock.now(), INTERRUPTED_WRITE_RETENTION_MS) };
    if (!(await rows.reserve(row.applicationId, row.id, reservation))) throw notFound('Context', row.id);
    const staging = profiles.staging(id);
    try {
      await staging.create();
      const facts = { ...(await storeObjects(id, staging)), source };
      signal.throwIfAborted();
      const keptVersion = await rows.keep(row.applicationId, row.id, { ...retentionFields(clock.now()), id, facts });
      return viewOf(requireContext(keptVersion?.context, row.id));
    } catch (error) {
      await rows.abandon(id, clock.now());
      trigger();
      throw error;
    } finally {
      await staging.remove();
    }
  }

  async #copy(
    original: ContextRow,
    version: VersionRow,
    targetContext: ContextRow,
    { id, staging, signal }: { id: VersionId; staging: Staging; signal: AbortSignal },
  ): Promise<Omit<VersionFacts, 'source'>> {
    const { storedVersions, profiles } = this.#parts;
    const { archive, cookiesOf, partial, sizeBytes } = version;
    if (cookiesOf) {
      const cookies = await storedVersions.openCookies(original, cookiesOf);
      await storedVersions.storeCookies(
        targetContext,
        id,
        await profiles.sealCookies(cookies, await storedVersions.cookiesSeal(targetContext, id)),
        signal,
      );
    }
    const commonFacts = { partial, ...(cookiesOf ? { cookiesOf: id } : {}) };
    if (!archive) return { ...commonFacts, sizeBytes };
    const sealedArchive = await storedVersions.openArchive(original, archive);
    const packedArchive = await profiles.reseal(
      sealedArchive,
      staging,
      await storedVersions.archiveSeal(targetContext, id),
      signal,
    );
    return { ...commonFacts, ...(await this.#storePacked(targetContext, id, staging, packedArchive, signal)) };
  }

  async #storePacked(
    row: ContextRow,
    id: VersionId,
    staging: Staging,
    packedArchive: PackedProfile,
    signal: AbortSignal,
  ) {
    await this.#parts.storedVersions.storeArchive(row, id, staging.archiveFile, signal);
    return { sizeBytes: packedArchive.sizeBytes, archive: { versionId: id, checksum: packedArchive.checksum } };
  }

  async #requireRow(caller: AgentCaller, id: string): Promise<ContextRow> {
    const row = isUuid(id) ? await this.#parts.rows.get(caller.applicationId, id as ContextId) : undefined;
    return requireContext(row, id);
  }

  /**
   * Returns the version with this number, or the newest version if no number is given. An expired version is treated as
   * not found, even if it has not been removed yet.
   */
  async #requireVersion(row: ContextRow, number: number | undefined): Promise<VersionRow> {
    const now = this.#parts.clock.now();
    const versions = await this.#parts.rows.versions(row.applicationId, row.id);
    const foundVersion = number === undefined ? versions[0] : versions.find(({ version }) => version === number);
    if (!foundVersion || (foundVersion.expiresAt && foundVersion.expiresAt <= now))
      throw notFound('Version', `${number ?? row.version}`);
    return foundVersion;
  }

  #unreadableError(error: unknown, { version }: VersionRow): unknown {
    if (!this.#parts.storedVersions.isDamage(error) && !(error instanceof StateDamaged)) return error;
    return fault('context_unreadable', `The stored data of context version ${version} is damaged.`, {
      advice: 'Restore an earlier version, or specify one in the request.',
      details: { version },
      cause: error,
    });
  }
}

export function viewOf(row: ContextRow): Context {
  const { id, applicationId, name, version, sizeBytes, lastSessionId, createdAt, updatedAt } = row;
  return {
    id,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    projectId: applicationId,
    ...(name === undefined ? {} : { name }),
    version,
    sizeBytes,
    ...(lastSessionId ? { lastSessionId } : {}),
  };
}

const versionView = (row: VersionRow, { version }: ContextRow): ContextVersion => ({
  version: row.version,
  createdAt: row.createdAt.toISOString(),
  source: row.source,
  ...(row.sessionId ? { sessionId: row.sessionId } : {}),
  partial: row.partial,
  sizeBytes: row.sizeBytes,
  current: row.version === version,
  ...(row.expiresAt ? { expiresAt: row.expiresAt.toISOString() } : {}),
});

const storedObjectsOf = ({
  archive,
  cookiesOf,
}: { [Name in 'archive' | 'cookiesOf']: VersionRow[Name] | undefined }) => ({
  ...(archive ? { archive } : {}),
  ...(cookiesOf ? { cookiesOf } : {}),
});

function requireContext(row: ContextRow | undefined, id: string): ContextRow {
  if (!row) throw notFound('Context', id);
  return row;
}

function cleanName(text: string): string {
  const name = text.trim().normalize('NFC');
  const length = [...name].length;
  if (length < 1 || length > CONTEXT_NAME_CHARACTERS_MAX || /\p{Cc}/u.test(name))
    throw invalidRequest([
      {
        path: 'name',
        message: `must have 1 to ${CONTEXT_NAME_CHARACTERS_MAX} printable characters, not counting leading and trailing spaces`,
      },
    ]);
  return name;
}

const nameTaken = (name: string) =>
  fault('context_name_taken', `A context named ${JSON.stringify(name)} already exists.`, {
    advice: 'Choose another name, or use that context.',
  });

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

const badOrigin = (index: number, origin: string) =>
  invalidRequest([
    {
      path: `origins[${index}].origin`,
      message: `is ${JSON.stringify(origin)}; expected an origin such as https://shop.example`,
    },
  ]);
