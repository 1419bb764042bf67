// Saves session logs and receipts as files.
import type { SessionLog } from '../../../contract/logs.ts';
import { callWithHeaders, sendRequest } from './call.ts';

/** Saves the network log as a HAR file. */
export async function saveHar(app: string, id: string): Promise<void> {
  const response = await sendRequest('listSessionLogs', { app, params: { id }, query: { format: 'har' } });
  saveBlob(await response.blob(), `${id}.har`);
}

/** Saves all entries of the log, one JSON object per line. */
export async function saveLog(app: string, id: string): Promise<void> {
  const lines: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const query = cursor === undefined ? {} : { after: cursor };
    const { body, headers } = await callWithHeaders('listSessionLogs', { app, params: { id }, query });
    const entries: readonly SessionLog[] = body ?? [];
    for (const entry of entries) lines.push(`${JSON.stringify(entry)}\n`);
    const nextCursor = headers.get('x-next-after') ?? undefined;
    if (entries.length === 0 || nextCursor === undefined || nextCursor === cursor) break;
    cursor = nextCursor;
  }
  saveBlob(new Blob(lines, { type: 'application/x-ndjson' }), `${id}.ndjson`);
}

/** Saves the receipt as the API returned it, for `berth receipts verify`. */
export const saveReceipt = (invocationId: string, receipt: string): void =>
  saveBlob(new Blob([`${receipt}\n`], { type: 'application/jose' }), `receipt-${invocationId}.jws`);

function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
