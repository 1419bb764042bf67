// Validates and dispatches the download events of all browser contexts, which arrive on a root channel. The browser may
// be hostile, so the shape of each event is checked here. The strings in an event remain untrusted.

import { type JsonObject, textAt } from '../../kit/json.ts';
export interface DownloadListener {
  began(download: {
    readonly guid: string;
    readonly url: string;
    readonly suggestedName: string;
    /** The id of the frame that started the download. The main frame of a page has the id of the page. */
    readonly frame: string;
  }): void;
  progressed(progress: {
    readonly guid: string;
    readonly state: 'inProgress' | 'completed' | 'canceled';
    readonly receivedBytes: number;
    /** As declared by the site, or 0 if the site declared no size. */
    readonly totalBytes: number;
  }): void;
}

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const STATES = ['inProgress', 'completed', 'canceled'] as const;

/** Whether the string has the form of a download GUID. The GUID is also the name of the downloaded file. */
const isDownloadGuid = (text: string): boolean => GUID.test(text);

export function dispatchDownloadEvent(
  method: string | undefined,
  params: JsonObject | undefined,
  listener: DownloadListener,
): void {
  const guid = textAt(params, 'guid');
  if (guid === undefined || !isDownloadGuid(guid)) return;
  if (method === 'Browser.downloadWillBegin')
    listener.began({
      guid,
      url: textAt(params, 'url') ?? '',
      suggestedName: textAt(params, 'suggestedFilename') ?? '',
      frame: textAt(params, 'frameId') ?? '',
    });
  const state = STATES.find(one => one === textAt(params, 'state'));
  if (method !== 'Browser.downloadProgress' || !state) return;
  listener.progressed({
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
