// HTTP handlers for recordings: replays, playlists, pictures and files.
import { PICTURE_TYPE, REPLAY_TYPE } from '../../../contract/recordings.ts';
import type { Recordings } from '../../domain/recordings/api.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export const recordingHandlers = ({ recordings }: { readonly recordings: Recordings }) => ({
  listReplays: async ({ caller, params, path }: HandlerInput<'listReplays'>): Promise<HttpResponse> => {
    const { pages, ...otherFields } = await recordings.replays(caller, params.id);
    // Replay addresses use the mount that was requested.
    const basePath = path.replace(/\/$/, '');
    const pagesWithUrls = pages.map(page => ({ ...page, url: `${basePath}/${page.pageId}` }));
    return jsonResponse({ pages: pagesWithUrls, pageCount: pages.length, ...otherFields });
  },

  readReplay: async ({ caller, params }: HandlerInput<'readReplay'>): Promise<HttpResponse> => ({
    body: await recordings.playlist(caller, params.id, params.pageId),
    contentType: REPLAY_TYPE,
    headers: { 'cache-control': 'no-store', 'access-control-allow-origin': '*' },
  }),

  readPicture: async ({ caller, params }: HandlerInput<'readPicture'>): Promise<HttpResponse> => {
    const picture = await recordings.picture(caller, params.id);
    const headers = { 'cache-control': 'no-store' };
    return picture
      ? { body: picture, contentType: PICTURE_TYPE, headers }
      : { ...emptyResponse(), status: 204, headers };
  },

  requestRecordings: async ({ caller, params }: HandlerInput<'requestRecordings'>): Promise<HttpResponse> =>
    jsonResponse({ downloads: await recordings.requestFiles(caller, params.id) }),

  listRecordings: async ({ caller, params }: HandlerInput<'listRecordings'>): Promise<HttpResponse> =>
    jsonResponse({ downloads: await recordings.files(caller, params.id) }),
});
