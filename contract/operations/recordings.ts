// Replays, pictures and MP4 files of pages.

import type { Operation } from '../operation.ts';
import { PICTURE_TYPE, REPLAY_TYPE, RecordingDownloads, ReplayParams, Replays } from '../recordings.ts';
import { SessionParams } from '../sessions.ts';

const RECORDING_ERRORS = [
  'not_found',
  'recording_disabled',
  'session_not_ended',
  'recording_expired',
  'recording_not_found',
  'rate_limited',
  'recording_service_unavailable',
] as const;

export const RECORDING_OPERATIONS = {
  listReplays: {
    tag: 'Recordings',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/replays',
    summary: 'List the replays of a session',
    description:
      'Returns every recorded page with its start and end time, even while the session is running. If there is no replay, the status is 404 and `details.reason` is the reason: `disabled` (the session was created with `recordSession` false), `none` (nothing has been recorded yet) or `expired` (the session ended more than 31 days ago).',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The replays.', schema: Replays } },
    errors: ['not_found', 'replay_not_found'],
  },
  readReplay: {
    tag: 'Recordings',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/replays/{pageId}',
    summary: 'Read the replay of a page',
    description:
      'Returns the HLS playlist of a page, with H.264 video in fragmented MP4 segments. While the page is being recorded, the playlist has the type `EVENT`, grows, and is at most eight seconds behind. Afterwards it has the type `VOD` and is complete. Segment addresses require no key and are valid for six hours; a playlist that is read again has the same addresses for half an hour.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: ReplayParams,
    responses: {
      200: {
        description: 'The playlist.',
        contentType: REPLAY_TYPE,
        headers: { 'access-control-allow-origin': '`*`.' },
      },
    },
    errors: ['not_found', 'replay_not_found', 'rate_limited'],
  },
  readPicture: {
    tag: 'Recordings',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/picture',
    summary: 'Read the newest picture of a session',
    description:
      'Returns the newest picture of the page that changed last, as a JPEG. For an ended session it is the last picture. The browser is not queried for it, so the status is 204 if no picture is available: the session is neither recorded nor watched, or it ended more than 31 days ago. Input fields that recordings black out are blacked out here too.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    responses: {
      200: { description: 'The picture.', contentType: PICTURE_TYPE },
      204: { description: 'No picture is available.' },
    },
    errors: ['not_found'],
  },
  requestRecordings: {
    tag: 'Recordings',
    method: 'POST',
    path: '/v1/browsers/sessions/{id}/recording/downloads',
    summary: 'Request MP4 files',
    description:
      'Starts the assembly of one MP4 file for each page of an ended session. Send the request again to retry files that failed. Read the result with `GET` on the same path.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: SessionParams,
    responses: { 202: { description: 'The files are being assembled.', schema: RecordingDownloads } },
    errors: RECORDING_ERRORS,
  },
  listRecordings: {
    tag: 'Recordings',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/recording/downloads',
    summary: 'List MP4 files',
    description:
      'Returns the state of the MP4 file of each page. `downloadUrl` requires no key, supports byte ranges, is valid for six hours, and is new in every response.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The files.', schema: RecordingDownloads } },
    errors: RECORDING_ERRORS,
  },
} as const satisfies Readonly<Record<string, Operation>>;
