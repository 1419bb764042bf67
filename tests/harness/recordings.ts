// Sends requests about recordings.
import { setTimeout } from 'node:timers/promises';
import type { RecordingDownload, Replay } from '../../contract/recordings.ts';
import type { HttpResult } from './http.ts';
import type { TestServer } from './server.ts';

const POLL_INTERVAL_MS = 1_000;
const POLLS_MAX = 120;

export async function listReplays(server: TestServer, id: string): Promise<readonly Replay[]> {
  const response = await server.api<{ pages: Replay[] }>('GET', `/v1/browsers/sessions/${id}/replays`);
  return response.status === 200 ? response.body.pages : [];
}

/** Returns the playlist, or undefined while there is no playlist yet. */
export async function fetchPlaylist(server: TestServer, id: string, pageId: string): Promise<string | undefined> {
  const response = await server.api('GET', `/v1/browsers/sessions/${id}/replays/${pageId}`);
  return response.status === 200 ? response.text : undefined;
}

/** Requests the playlist repeatedly, within the rate limit, until the text matches. */
export async function waitForPlaylist(
  server: TestServer,
  id: string,
  pageId: string,
  isMatch: (text: string) => boolean,
): Promise<string> {
  for (let turn = 0; turn < POLLS_MAX; turn++) {
    const text = await fetchPlaylist(server, id, pageId);
    if (text !== undefined && isMatch(text)) return text;
    await setTimeout(POLL_INTERVAL_MS);
  }
  throw new Error(`the playlist of page ${pageId} did not satisfy the condition within the time limit`);
}

export async function listRecordingFiles(server: TestServer, id: string): Promise<readonly RecordingDownload[]> {
  const path = `/v1/browsers/sessions/${id}/recording/downloads`;
  const response = await server.api<{ downloads: RecordingDownload[] }>('GET', path);
  if (response.status !== 200)
    throw new Error(`the files at ${path} could not be listed: ${response.status} ${response.text}`);
  return response.body.downloads;
}

export const requestFiles = (server: TestServer, id: string): Promise<HttpResult<unknown>> =>
  server.api('POST', `/v1/browsers/sessions/${id}/recording/downloads`);

/**
 * Fetches the bytes of a playlist from its last init segment on. A page whose size changes has several init segments.
 */
export async function fetchFilm(playlist: string): Promise<Buffer> {
  const lastPart = playlist.slice(Math.max(0, playlist.lastIndexOf('#EXT-X-MAP')));
  const initUrl = /#EXT-X-MAP:URI="([^"]+)"/.exec(lastPart)?.[1];
  const mediaUrls = lastPart.split('\n').filter(line => line !== '' && !line.startsWith('#'));
  const parts: Buffer[] = [];
  for (const url of [...(initUrl ? [initUrl] : []), ...mediaUrls]) {
    const response = await fetch(url);
    if (response.status !== 200) throw new Error(`the segment at ${url} could not be fetched: ${response.status}`);
    parts.push(Buffer.from(await response.arrayBuffer()));
  }
  return Buffer.concat(parts);
}
