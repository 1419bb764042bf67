// The downloads of sessions. Callers can list, read and delete them. Signed links serve their files.

import type { Download, DownloadPage, DownloadsQuery } from '../../../contract/files.ts';
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { CompleteDownload, DownloadFilter, DownloadRows } from '../../engines/store/rows/downloads.ts';
import type { SessionRows } from '../../engines/store/rows/sessions.ts';
import { type ApplicationId, type DownloadId, isUuid, type SessionId } from '../../kit/ids.ts';
import { fault, invalidRequest, notFound } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { requireSession } from '../sessions/session.ts';
import { contentDisposition } from './content-disposition.ts';
import type { LinkObject, Links } from './links.ts';
import type { Outbox } from './outbox.ts';
import type { FileFinder, ServedFile } from './served-file.ts';

const LIMIT_DEFAULT = 20;
/** Maximum number of a session's files in one archive. */
const ARCHIVE_FILES_MAX = 10_000;

export interface DownloadsParts {
  readonly rows: DownloadRows;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly artifacts: Pick<Artifacts, 'signedUrl'>;
  readonly outbox: Outbox;
  readonly keyOf: (application: ApplicationId, session: SessionId, download: DownloadId) => ArtifactKey;
  readonly links: Links;
  /** Finders for files that are not downloads. The key is the kind that a link names. */
  readonly finders: Readonly<Record<string, FileFinder>>;
}

export class Downloads {
  readonly #parts: DownloadsParts;

  constructor(parts: DownloadsParts) {
    this.#parts = parts;
  }

  async list(caller: AgentCaller, query: DownloadsQuery): Promise<DownloadPage> {
    const ownSessionId = await this.#requireSessionId(caller, query.sessionId);
    const { limit = LIMIT_DEFAULT, offset = 0 } = query;
    const filter = { ...filterOf(query), limit, offset };
    const { downloads, total } = await this.#parts.rows.list(caller.applicationId, ownSessionId, filter);
    return { downloads: await this.#viewsOf(caller.applicationId, downloads), total, limit, offset };
  }

  async read(caller: AgentCaller, id: string): Promise<Download> {
    const [downloadView] = await this.#viewsOf(caller.applicationId, [await this.#require(caller, id)]);
    if (!downloadView) throw notFound('Download', id);
    return downloadView;
  }

  /** Returns a new signed link for a viewer, who has no key. */
  async linkTo(row: CompleteDownload): Promise<string> {
    const [downloadView] = await this.#viewsOf(row.applicationId, [row]);
    if (!downloadView) throw notFound('Download', row.id);
    return downloadView.downloadUrl;
  }

  /** Returns the file for a caller with a key. */
  async file(caller: AgentCaller, id: string): Promise<ServedFile> {
    return this.#servedFile(await this.#require(caller, id));
  }

  /**
   * Deletes a download. Removes the bytes first: a row without bytes can be deleted again, while bytes without a row
   * would remain until the retention period ends.
   */
  async remove(caller: AgentCaller, id: string): Promise<void> {
    const row = await this.#require(caller, id);
    await this.#parts.outbox.remove(row.applicationId, [this.#keyOf(row)]).catch(error => {
      throw fault(
        'storage_unreachable',
        `Download ${id} was not deleted: the file storage is unreachable or returned an error.`,
        {
          advice: 'Send the request again in a few seconds.',
          cause: error,
        },
      );
    });
    await this.#parts.rows.remove(row.applicationId, row.id);
  }

  /** Returns all downloads of a session, oldest first. */
  async archive(caller: AgentCaller, sessionId: string): Promise<ServedFile[]> {
    const ownSessionId = await this.#requireSessionId(caller, sessionId);
    const archiveFilter = { limit: ARCHIVE_FILES_MAX, offset: 0 };
    const { downloads } = await this.#parts.rows.list(caller.applicationId, ownSessionId, archiveFilter);
    return downloads.map(row => this.#servedFile(row));
  }

  /** Returns the file that a signed link refers to. */
  async fileOfLink(token: string): Promise<ServedFile> {
    const { links, finders } = this.#parts;
    const { application, object } = links.read(token);
    const [kind = '', id = ''] = splitObject(object);
    const find = kind === DOWNLOAD_KIND ? this.#find : finders[kind];
    const foundFile = await find?.(application, id);
    if (foundFile) return foundFile;
    throw fault('not_found', 'The file that this link refers to no longer exists.', {
      advice: 'The file was deleted, or its retention period has ended.',
    });
  }

  readonly #find: FileFinder = async (application, id) => {
    const row = await this.#parts.rows.get(application, id as DownloadId);
    return row && this.#servedFile(row);
  };

  async #viewsOf(application: ApplicationId, rows: readonly CompleteDownload[]): Promise<Download[]> {
    const unstoredKeys = await this.#parts.outbox.waiting(
      application,
      rows.map(row => this.#keyOf(row)),
    );
    return Promise.all(rows.map(row => this.#view(row, !unstoredKeys.has(this.#keyOf(row)))));
  }

  async #view(row: CompleteDownload, isStored: boolean): Promise<Download> {
    const { id, sessionId, filename, mimeType, size, checksum, createdAt } = row;
    const expiresAt = this.#parts.links.expiry();
    return {
      ...{ id, sessionId, filename, mimeType, size, checksum },
      createdAt: createdAt.toISOString(),
      downloadUrl: await this.#createUrl(row, isStored, expiresAt),
      downloadUrlExpiresAt: expiresAt.toISOString(),
    };
  }

  /**
   * Returns a URL of the object store if the store can sign links and already has the file. Otherwise returns a URL of
   * this service.
   */
  async #createUrl(row: CompleteDownload, isStored: boolean, expiresAt: Date): Promise<string> {
    const { artifacts, links } = this.#parts;
    const responseHeaders = {
      contentType: row.mimeType,
      contentDisposition: contentDisposition('attachment', row.filename),
    };
    const directUrl =
      isStored &&
      (await artifacts
        .signedUrl(this.#keyOf(row), { expiresAt, verb: 'GET', ...responseHeaders })
        .catch(() => undefined));
    return (
      directUrl || links.make({ application: row.applicationId, object: `${DOWNLOAD_KIND}:${row.id}` }, expiresAt).url
    );
  }

  #servedFile(row: CompleteDownload): ServedFile {
    return {
      ...{ name: row.filename, size: row.size, mimeType: row.mimeType, tag: row.checksum, createdAt: row.createdAt },
      disposition: 'attachment',
      open: range => this.#parts.outbox.open(row.applicationId, this.#keyOf(row), range),
    };
  }

  #keyOf({ applicationId, sessionId, id }: CompleteDownload): ArtifactKey {
    return this.#parts.keyOf(applicationId, sessionId, id);
  }

  async #require(caller: AgentCaller, id: string): Promise<CompleteDownload> {
    const row = isUuid(id) ? await this.#parts.rows.get(caller.applicationId, id as DownloadId) : undefined;
    if (!row) throw notFound('Download', id);
    return row;
  }

  async #requireSessionId(caller: AgentCaller, id: string): Promise<SessionId> {
    return (await requireSession(this.#parts.sessions, caller.applicationId, id)).id;
  }
}

const DOWNLOAD_KIND = 'download';

const splitObject = (object: LinkObject): [string, string] => {
  const colonIndex = object.indexOf(':');
  return [object.slice(0, colonIndex), object.slice(colonIndex + 1)];
};

function filterOf(query: DownloadsQuery): Omit<DownloadFilter, 'limit' | 'offset'> {
  const { filename, mimeType, minSize, maxSize, createdAfter, createdBefore } = query;
  return {
    ...(filename === undefined ? {} : { filename }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(minSize === undefined ? {} : { minSize }),
    ...(maxSize === undefined ? {} : { maxSize }),
    ...(createdAfter === undefined ? {} : { createdAfter: timeOf('createdAfter', createdAfter) }),
    ...(createdBefore === undefined ? {} : { createdBefore: timeOf('createdBefore', createdBefore) }),
  };
}

/** Matches a date, or a date and a time. `Date` alone accepts almost any text that contains a number. */
const ISO_8601_PATTERN = /^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?)?$/;

function timeOf(path: string, text: string): Date {
  const time = new Date(text);
  if (!ISO_8601_PATTERN.test(text) || Number.isNaN(time.getTime()))
    throw invalidRequest([
      { path, message: 'is not a valid time; expected a date or a time in ISO 8601, such as 2026-09-24T10:16:02Z' },
    ]);
  return time;
}
