// What Chromium tells of downloads, as its root channel hears it: of every browser context. It comes from a browser that
// may be hostile, so only its form is taken for granted here, never its words.

import { type JsonObject, textAt } from '../../kit/json.ts';
export interface DownloadListener {
  began(download: {
    readonly guid: string;
    readonly url: string;
    readonly suggestedName: string;
    /** The frame that it began in; the main frame of a page has the page's name. */
    readonly frame: string;
  }): void;
  progressed(progress: {
    readonly guid: string;
    readonly state: 'inProgress' | 'completed' | 'canceled';
    readonly receivedBytes: number;
    /** As the site said; 0 where it did not. */
    readonly totalBytes: number;
  }): void;
}

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const STATES = ['inProgress', 'completed', 'canceled'] as const;

/** Whether it can be the name of a download's file. */
export const isDownloadGuid = (text: string): boolean => GUID.test(text);

export function tellOfDownload(method: string | undefined, params: JsonObject | undefined, to: DownloadListener): void {
  const guid = textAt(params, 'guid');
  if (guid === undefined || !isDownloadGuid(guid)) return;
  if (method === 'Browser.downloadWillBegin')
    to.began({
      guid,
      url: textAt(params, 'url') ?? '',
      suggestedName: textAt(params, 'suggestedFilename') ?? '',
      frame: textAt(params, 'frameId') ?? '',
    });
  const state = STATES.find(word => word === textAt(params, 'state'));
  if (method !== 'Browser.downloadProgress' || !state) return;
  to.progressed({
    guid,
    state,
    receivedBytes: bytesAt(params, 'receivedBytes'),
    totalBytes: bytesAt(params, 'totalBytes'),
  });
}

function bytesAt(params: JsonObject | undefined, name: string): number {
  const value = params?.[name];
  return typeof value === 'number' ? value : 0;
}
