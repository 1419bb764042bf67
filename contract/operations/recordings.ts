// Replays, pictures and films of pages.

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
      'Every page that was recorded, with when it begins and ends, also while the session runs. `404` with `details.reason`: `disabled` (made with `recordSession` false), `none` (nothing was to be seen so far), `expired` (31 days have passed).',
    credential: 'agentKey',
    scopes: ['browsers:read'],
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
    summary: 'Watch a page',
    description:
      'The HLS playlist of a page, with H.264 in fragmented MP4. While the page is recorded it is an `EVENT` that grows, at most eight seconds behind; then it is `VOD` and ends. The addresses of its segments need no key and are good for six hours; a playlist that is read again keeps them for half an hour.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
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
    summary: 'See how a session looks',
    description:
      'The newest picture of the page that changed last, as a JPEG: of a running session the newest there is, of one that has ended the last one. Nothing is asked of the browser for it: `204` where no picture was taken, because the session is not recorded and nobody looks at it, or because 31 days have passed. What recordings hide is hidden here too.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    responses: {
      200: { description: 'The picture.', contentType: PICTURE_TYPE },
      204: { description: 'There is none.' },
    },
    errors: ['not_found'],
  },
  requestRecordings: {
    tag: 'Recordings',
    method: 'POST',
    path: '/v1/browsers/sessions/{id}/recording/downloads',
    summary: 'Ask for MP4 files',
    description:
      'Has one MP4 file made of each page of a session that has ended. Ask again to have failed ones tried once more; then read them with the operation of the same path.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: SessionParams,
    responses: { 202: { description: 'They are being made.', schema: RecordingDownloads } },
    errors: RECORDING_ERRORS,
  },
  listRecordings: {
    tag: 'Recordings',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/recording/downloads',
    summary: 'Read MP4 files',
    description:
      'What became of the MP4 file of each page. `downloadUrl` needs no key, is good for six hours, answers ranges, and is another one each time.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The files.', schema: RecordingDownloads } },
    errors: RECORDING_ERRORS,
  },
} as const satisfies Readonly<Record<string, Operation>>;
