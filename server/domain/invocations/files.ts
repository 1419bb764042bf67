// Files that invocations produced: stored as downloads are, and served by signed links.
import { OUTPUT_DAYS } from '../../../contract/invocations.ts';
import { isManagedOperation } from '../../../contract/managed-operations.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { Staging } from '../../engines/artifacts/staging.ts';
import type { InvocationRow, InvocationRows } from '../../engines/store/rows/invocations.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import { type ApplicationId, type InvocationId, isUuid } from '../../kit/ids.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { limitReached } from '../faults.ts';
import type { Links } from '../files/links.ts';
import type { Outbox } from '../files/outbox.ts';
import type { FileFinder, ServedFile } from '../files/served-file.ts';
import type { Limits } from '../limits/limits.ts';

export const INVOCATION_OBJECT = 'invocation';
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'application/pdf': 'pdf',
};

/** What a row says of its file. */
interface StoredFile {
  readonly mimeType: string;
  readonly size: number;
  readonly checksum: string;
}

export interface InvocationFilesParts {
  readonly rows: Pick<InvocationRows, 'get' | 'outputDue' | 'forgetOutput'>;
  readonly stored: StoredBytes;
  readonly limits: Pick<Limits, 'effective'>;
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly links: Links;
  readonly keyOf: (application: ApplicationId, invocation: string) => ArtifactKey;
}

export class InvocationFiles {
  readonly #parts: InvocationFilesParts;

  constructor(parts: InvocationFilesParts) {
    this.#parts = parts;
  }

  /** Resolves when the file is durable. A repeated attempt replaces it. */
  async keep(application: ApplicationId, id: InvocationId, bytes: Uint8Array, mimeType: string): Promise<JsonObject> {
    const { staging, outbox, keyOf, limits, stored } = this.#parts;
    const { maxStoredBytes } = await limits.effective(application);
    if ((await stored.ofApplication(application)) + bytes.byteLength > maxStoredBytes)
      throw limitReached('stored bytes (maxStoredBytes)', maxStoredBytes);
    const { name, size, checksum } = await staging.write(onePart(bytes));
    await outbox.post(application, { key: keyOf(application, id), staged: name, contentType: mimeType });
    return { mimeType, size, checksum };
  }

  /** The output with a new link to its file. */
  shown(row: InvocationRow): JsonObject | undefined {
    const { id, applicationId, output } = row;
    const file = fileOf(row);
    if (!file) return output;
    const { url, expiresAt } = this.#parts.links.make({
      application: applicationId,
      object: `${INVOCATION_OBJECT}:${id}`,
    });
    return { ...output, artifact: { downloadUrl: url, downloadUrlExpiresAt: expiresAt.toISOString(), ...file } };
  }

  readonly find: FileFinder = async (application, id): Promise<ServedFile | undefined> => {
    const row = isUuid(id) ? await this.#parts.rows.get(application, id as InvocationId) : undefined;
    const file = row && fileOf(row);
    if (!row || !file) return undefined;
    const { mimeType, size, checksum } = file;
    return {
      name: `${row.operationId}-${row.id}.${EXTENSIONS[mimeType] ?? 'bin'}`,
      ...{ size, mimeType, tag: checksum, disposition: 'attachment' },
      createdAt: row.endedAt ?? row.createdAt,
      open: range => this.#parts.outbox.open(application, this.#parts.keyOf(application, row.id), range),
    };
  };

  /** Removes outputs whose time is over. The file is removed before the row, so an interrupted run can be repeated. */
  async forgetOld(now: Date, batch: number): Promise<number> {
    const { rows, outbox, keyOf } = this.#parts;
    const due = await rows.outputDue(now, batch);
    for (const row of due) {
      if (fileOf(row)) await outbox.remove(row.applicationId, [keyOf(row.applicationId, row.id)]);
      await rows.forgetOutput(row.id);
    }
    return due.length;
  }
}

export const OUTPUT_MS = OUTPUT_DAYS * 24 * 3_600_000;

/** The output of other operations is an answer of a service, which may have a member of the same name. */
function fileOf({ operationId, output }: InvocationRow): StoredFile | undefined {
  const artifact = isManagedOperation(operationId) ? output?.artifact : undefined;
  if (!isObject(artifact)) return undefined;
  const { mimeType, size, checksum } = artifact;
  const isFile = typeof mimeType === 'string' && typeof size === 'number' && typeof checksum === 'string';
  return isFile ? { mimeType, size, checksum } : undefined;
}

async function* onePart(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
