// Gives a session the extensions that its create request names. They are unpacked into the session folder and loaded
// into the browser of the session, whether it is warm or new. Their service workers are started before the first client
// connects.
import { EXTENSIONS_PER_SESSION_MAX } from '../../../contract/extensions.ts';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { ExtensionPackages } from '../../engines/extensions/packages.ts';
import type { ExtensionRow, ExtensionRows } from '../../engines/store/rows/extensions.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId, ExtensionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { WorkLimiter } from '../../kit/work-limiter.ts';
import { fault, invalidRequest } from '../faults.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { Watcher } from '../sessions/watchers.ts';

const EXTENSION_IDS_FIELD = 'extensionIds';
/** Number of hexadecimal characters of the checksum in a folder name: 128 bits, which are enough for unique names. */
const FOLDER_NAME_CHARACTERS = 32;

export interface ExtensionsWatcherParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: Pick<ExtensionRows, 'use'>;
  readonly artifacts: Pick<Artifacts, 'open'>;
  readonly keyOf: (application: ApplicationId, checksum: string) => ArtifactKey;
  readonly packages: Pick<ExtensionPackages, 'unpack' | 'folderIn'>;
  readonly unpackLimiter: WorkLimiter;
  /** Whether browsers run in a jail. Without a jail, an extension could read the files of the machine. */
  readonly isJailed: boolean;
}

/** The data of an extension that is stored in the row of the session. */
interface StoredExtension {
  readonly id: string;
  readonly checksum: string;
}

export const extensionsWatcher = (parts: ExtensionsWatcherParts): Watcher => ({
  name: 'extensions',

  check: async (caller, { watcherSettings }) => {
    if (!watcherSettings.extensionIds) return undefined;
    if (!parts.isJailed) throw jailRequired();
    const rows = await requireExtensions(parts, caller.applicationId, watcherSettings.extensionIds);
    return { storedSettings: { loaded: rows.map(({ id, checksum }) => ({ id, checksum })) } };
  },

  describe: async row => {
    const ids = storedExtensions(row).map(({ id }) => id);
    return ids.length > 0 ? { browserSettings: { extensionIds: ids } } : {};
  },

  attend: async (liveSession, row, signal) => {
    const sessionExtensions = storedExtensions(row);
    for (const { id, checksum } of sessionExtensions)
      liveSession.browser.extensions.register(id, folderFor(parts, liveSession, checksum));
    // If the session is already running, the previous process has loaded its extensions.
    if (row.status === 'PENDING') await load(parts, liveSession, sessionExtensions, signal);
    return undefined;
  },
});

async function requireExtensions(
  { rows, clock }: ExtensionsWatcherParts,
  application: ApplicationId,
  ids: readonly string[],
): Promise<readonly ExtensionRow[]> {
  if (ids.length > EXTENSIONS_PER_SESSION_MAX)
    throw invalidRequest([
      {
        path: EXTENSION_IDS_FIELD,
        message: `names ${ids.length} extensions in all; expected at most ${EXTENSIONS_PER_SESSION_MAX}`,
      },
    ]);
  // Finds only extensions of this application.
  const usedRows = await rows.use(application, ids as readonly ExtensionId[], clock.now());
  const rowById = new Map<string, ExtensionRow>(usedRows.map(row => [row.id, row]));
  const foundRows = ids.flatMap(id => rowById.get(id) ?? []);
  const missingId = ids.find(id => !rowById.has(id));
  if (missingId !== undefined)
    throw fault(
      'unknown_extension',
      `${EXTENSION_IDS_FIELD} names the extension ${missingId}, which does not exist in this application.`,
      {
        advice: 'Upload the extension first, or correct the id.',
        details: { field: EXTENSION_IDS_FIELD, id: missingId },
      },
    );
  assertDistinct(foundRows);
  return foundRows;
}

/** Chromium lets unpacked extensions read `file:` URLs, and tests found no switch that prevents it. */
const jailRequired = () =>
  fault(
    'feature_unavailable',
    'Extensions are not available: this installation runs browsers without a jail, so an extension could read files on the machine.',
    {
      advice: `Omit ${EXTENSION_IDS_FIELD}, or ask the operator to set BERTH_ISOLATION=slot. The session was not created.`,
      details: { field: EXTENSION_IDS_FIELD },
    },
  );

/** Throws if two packages have the same Chromium extension id, because one package would replace the other. */
function assertDistinct(rows: readonly ExtensionRow[]): void {
  const rowByOwnId = new Map<string, ExtensionRow>();
  for (const row of rows) {
    const otherRow = row.ownId === undefined ? undefined : rowByOwnId.get(row.ownId);
    if (otherRow && otherRow.checksum !== row.checksum)
      throw invalidRequest([
        {
          path: EXTENSION_IDS_FIELD,
          message: `names ${otherRow.id} and ${row.id}, which are versions of the same extension; expected one`,
        },
      ]);
    if (row.ownId !== undefined) rowByOwnId.set(row.ownId, row);
  }
}

async function load(
  parts: ExtensionsWatcherParts,
  liveSession: LiveSession,
  sessionExtensions: readonly StoredExtension[],
  signal: AbortSignal,
): Promise<void> {
  // The same content may have been uploaded under two ids.
  const uniqueExtensions = [...new Map(sessionExtensions.map(one => [one.checksum, one])).values()];
  const placedExtensions = await Promise.all(
    uniqueExtensions.map(async extension => ({
      one: extension,
      facts: await placeWithinLimits(parts, liveSession, extension, signal),
    })),
  );
  for (const { one, facts } of placedExtensions) {
    const folder = folderFor(parts, liveSession, one.checksum);
    const loadResult = await liveSession.browser.extensions.load(folder, facts.hasServiceWorker).catch(error => {
      if (!isFault(error, 'extension_not_loaded')) throw error;
      throw fault('invalid_file', `Chromium could not load extension ${one.id}: ${error.message}.`, {
        advice: 'Correct the extension, upload it again, and use the new id.',
        details: { field: EXTENSION_IDS_FIELD, id: one.id },
      });
    });
    if (!loadResult.isWorkerRunning)
      parts.log.warn('extension.worker_not_started', { sessionId: liveSession.id, extensionId: one.id });
  }
}

const placeWithinLimits = (
  parts: ExtensionsWatcherParts,
  liveSession: LiveSession,
  extension: StoredExtension,
  signal: AbortSignal,
) =>
  parts.unpackLimiter.run(
    { application: liveSession.applicationId, session: liveSession.id },
    () => place(parts, liveSession, extension, signal),
    signal,
  );

async function place(
  { artifacts, keyOf, packages }: ExtensionsWatcherParts,
  liveSession: LiveSession,
  { id, checksum }: StoredExtension,
  signal: AbortSignal,
) {
  const artifact = await artifacts.open(keyOf(liveSession.applicationId, checksum));
  if (!artifact)
    throw fault('unknown_extension', `The file of extension ${id} is missing.`, {
      advice: 'Upload the extension again and use the new id.',
    });
  return packages.unpack(artifact.body, liveSession.box.folder, folderName(checksum), signal);
}

const folderName = (checksum: string): string => checksum.slice(0, FOLDER_NAME_CHARACTERS);

const folderFor = ({ packages }: ExtensionsWatcherParts, liveSession: LiveSession, checksum: string): string =>
  packages.folderIn(liveSession.box.folderInBox, folderName(checksum));

/** Returns the extensions that `check` stored in the settings of the session. */
function storedExtensions({ settings }: SessionRow): readonly StoredExtension[] {
  const { loaded }: { loaded?: unknown } = Object(settings.extensions);
  const list: readonly unknown[] = Array.isArray(loaded) ? loaded : [];
  return list.map(one => ({ id: String(Object(one).id), checksum: String(Object(one).checksum) }));
}
