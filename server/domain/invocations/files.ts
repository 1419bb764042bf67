// Files that invocations produced. They are stored like downloads, and served by signed links.
import { OUTPUT_RETENTION_DAYS } from '../../../contract/invocations.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { StagedFile, Staging } from '../../engines/artifacts/staging.ts';
import type { InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import { type ApplicationId, type InvocationId, isUuid } from '../../kit/ids.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { fault } from '../faults.ts';
import type { LinkObject, Links } from '../files/links.ts';
import type { Outbox } from '../files/outbox.ts';
import type { FileFinder, ServedFile } from '../files/served-file.ts';
import type { Limits } from '../limits/limits.ts';
import type { NewFile } from './prepared.ts';

export const INVOCATION_OBJECT = 'invocation';
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'application/pdf': 'pdf',
};

/** The data about a file that is stored in the row. */
type StoredFile = {
  readonly mimeType: string;
  readonly size: number;
  readonly checksum: string;
};

export interface InvocationFilesParts {
  readonly rows: Pick<InvocationRows, 'get' | 'listOutputDue' | 'forgetOutput'>;
  readonly stored: StoredBytes;
  readonly limits: Pick<Limits, 'effective'>;
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly links: Links;
  readonly keyOf: (application: ApplicationId, invocation: string) => ArtifactKey;
}

const storageFull = (bytes: number, usedBytes: number, limit: number): Error =>
  fault(
    'limit_reached',
    `The output files of this call total ${bytes} bytes, but the application already stores ${usedBytes} of at most ${limit} bytes.`,
    {
      advice:
        'Delete downloads that are no longer needed, or ask an admin of the application for a higher limit (maxStoredBytes).',
      details: { limit },
    },
  );

export class InvocationFiles {
  readonly #parts: InvocationFilesParts;

  constructor(parts: InvocationFilesParts) {
    this.#parts = parts;
  }

  /** Stores the files. Resolves when they are durable. A repeated attempt replaces them. */
  async keep(
    { id, applicationId }: Pick<InvocationRow, 'id' | 'applicationId'>,
    files: readonly NewFile[],
  ): Promise<StoredFile[]> {
    const { outbox, keyOf, limits, stored } = this.#parts;
    const { maxStoredBytes } = await limits.effective(applicationId);
    const newByteCount = files.reduce((sum, file) => sum + file.bytes.byteLength, 0);
    const storedBytes = await stored.ofApplication(applicationId);
    if (storedBytes + newByteCount > maxStoredBytes) throw storageFull(newByteCount, storedBytes, maxStoredBytes);
    const stagedFiles = await this.#stage(files);
    const posts = stagedFiles.map(({ name, mimeType }, index) => {
      const key = keyOf(applicationId, fileNameOf(id, index));
      return { key, staged: name, contentType: mimeType };
    });
    await outbox.post(applicationId, ...posts);
    return stagedFiles.map(({ mimeType, size, checksum }) => ({ mimeType, size, checksum }));
  }

  /**
   * Stages all files, or none. No file is posted before all are staged: if the call fails, its files are not in any
   * output, so nothing would remove them.
   */
  async #stage(files: readonly NewFile[]): Promise<Array<StagedFile & StoredFile>> {
    const { staging } = this.#parts;
    const stagedFiles: Array<StagedFile & StoredFile> = [];
    try {
      for (const { bytes, mimeType } of files) {
        const stagedFile = await staging.write(singleChunk(bytes));
        stagedFiles.push({ ...stagedFile, mimeType });
      }
      return stagedFiles;
    } catch (error) {
      for (const { name } of stagedFiles) await staging.remove(name);
      throw error;
    }
  }

  /** Returns the output with new links to its files. */
  outputWithLinks(row: InvocationRow): JsonObject | undefined {
    const output = this.#withDownloadLinks(row);
    const files = filesOf(row);
    if (files.length === 0) return output;
    const linkedFiles = files.map((file, index) => this.#withLink(row, file, index));
    return {
      ...output,
      ...(Array.isArray(output?.artifacts) ? { artifacts: linkedFiles } : { artifact: linkedFiles[0] ?? null }),
    };
  }

  /** Adds links to files that the browser downloaded, which are kept with the other downloads of the session. */
  #withDownloadLinks({ kind, applicationId, output }: InvocationRow): JsonObject | undefined {
    if (kind === 'http' || !Array.isArray(output?.downloads)) return output;
    const addLink = (file: Json): Json => {
      if (!isObject(file) || typeof file.id !== 'string') return file;
      const { url, expiresAt } = this.#parts.links.make({ application: applicationId, object: `download:${file.id}` });
      return { ...file, downloadUrl: url, downloadUrlExpiresAt: expiresAt.toISOString() };
    };
    return { ...output, downloads: output.downloads.map(addLink) };
  }

  readonly find: FileFinder = async (application, fileName): Promise<ServedFile | undefined> => {
    const [, id = '', index = '0'] = FILE_NAME_PATTERN.exec(fileName) ?? [];
    const row = isUuid(id) ? await this.#parts.rows.get(application, id as InvocationId) : undefined;
    const file = row && filesOf(row)[Number(index)];
    if (!row || !file) return undefined;
    const { mimeType, size, checksum } = file;
    return {
      name: `${row.operationId}-${fileName}.${EXTENSIONS[mimeType] ?? 'bin'}`,
      ...{ size, mimeType, tag: checksum, disposition: 'attachment' },
      createdAt: row.endedAt ?? row.createdAt,
      open: range => this.#parts.outbox.open(application, this.#parts.keyOf(application, fileName), range),
    };
  };

  /**
   * Removes outputs whose retention period is over. The files are removed before the output is cleared from the
   * row, so an interrupted run can be repeated.
   */
  async forgetOld(now: Date, batchSize: number): Promise<number> {
    const { rows, outbox, keyOf } = this.#parts;
    const dueRows = await rows.listOutputDue(now, batchSize);
    for (const row of dueRows) {
      const keys = filesOf(row).map((_, index) => keyOf(row.applicationId, fileNameOf(row.id, index)));
      if (keys.length > 0) await outbox.remove(row.applicationId, keys);
      await rows.forgetOutput(row.id);
    }
    return dueRows.length;
  }

  #withLink({ id, applicationId }: InvocationRow, file: StoredFile, index: number): JsonObject {
    const object: LinkObject = `${INVOCATION_OBJECT}:${fileNameOf(id, index)}`;
    const { url, expiresAt } = this.#parts.links.make({ application: applicationId, object });
    return { downloadUrl: url, downloadUrlExpiresAt: expiresAt.toISOString(), ...file };
  }
}

/** Returns the name of a file in keys and links. The name of the first file is the id of the invocation. */
const fileNameOf = (id: InvocationId, index: number): string => (index === 0 ? id : `${id}-${index}`);
const FILE_NAME_PATTERN = /^([0-9a-f-]{36})(?:-([1-9][0-9]?))?$/;

export const OUTPUT_RETENTION_MS = OUTPUT_RETENTION_DAYS * 24 * 3_600_000;

/**
 * Returns the files that an invocation stored. Empty for an HTTP operation: its output is the response of a service,
 * which may also have members named `artifact` or `artifacts`.
 */
function filesOf({ kind, output }: InvocationRow): readonly StoredFile[] {
  if (kind === 'http') return [];
  const { artifact, artifacts } = output ?? {};
  return (Array.isArray(artifacts) ? artifacts : [artifact]).flatMap(storedFileIn);
}

function storedFileIn(value: Json | undefined): readonly StoredFile[] {
  if (!isObject(value)) return [];
  const { mimeType, size, checksum } = value;
  const isFile = typeof mimeType === 'string' && typeof size === 'number' && typeof checksum === 'string';
  return isFile ? [{ mimeType, size, checksum }] : [];
}

async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
