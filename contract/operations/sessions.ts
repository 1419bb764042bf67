// Sessions: create, read, list, update, release, upload files.

import { Type } from 'typebox';
import { UploadResponse } from '../files.ts';
import type { Operation } from '../operation.ts';
import { CreateSession, Session, SessionParams, SessionQuery, UpdateSession } from '../sessions.ts';
import { ADMISSION_HEADERS } from './shared.ts';

/** Settings that restrict what a session can reach, keep or show, each with alternative names that callers may use. */
export const PROTECTING_FIELDS = {
  'browserSettings.networkPolicy': ['network'],
  'browserSettings.allowedDomains': ['domains', 'allowedHosts'],
  'browserSettings.maskInputs': ['mask'],
  'browserSettings.recordSession': ['record', 'recording'],
  'browserSettings.logSession': ['log', 'logging'],
  'browserSettings.takeover': [],
  'browserSettings.egressBytes': [],
  proxies: ['proxy'],
} as const;

export const SESSION_OPERATIONS = {
  createSession: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions',
    summary: 'Create a session',
    description:
      'Starts a browser and responds when it is running. Without `keepAlive` the session ends shortly after its last client has disconnected, and after 300 seconds if no client connects. If the response is lost, send the request again only with the same `Idempotency-Key`; without one, list sessions by a unique value in `userMetadata`.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    isExemptFromRateLimits: true,
    mount: 'both',
    unknownFields: 'warn',
    protectingFields: PROTECTING_FIELDS,
    body: CreateSession,
    bodyExample: { timeout: 900, keepAlive: true, userMetadata: { run: 'r-1842' } },
    mayWait: true,
    secretFields: ['connectUrl', 'seleniumRemoteUrl', 'signingKey'],
    responses: {
      201: {
        description: 'The session, with its connection fields.',
        schema: Session,
        headers: { Location: 'Path of the session.', ...ADMISSION_HEADERS },
      },
    },
    errors: [
      'unknown_field',
      'conflicting_fields',
      'project_mismatch',
      'unknown_context',
      'context_in_use',
      'unknown_certificate',
      'unknown_extension',
      'proxy_unreachable',
      'invalid_file',
      'feature_unavailable',
      'insufficient_credit',
      'concurrency_limit',
      'rate_limited',
      'capacity',
      'browser_start_timeout',
    ],
  },
  listSessions: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions',
    summary: 'List sessions',
    description: 'Returns the sessions of the application, newest first, without connection fields, as a JSON array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    query: SessionQuery,
    responses: {
      200: {
        description: 'The sessions. `[]` if none matches.',
        schema: Type.Array(Session),
        headers: { 'x-next-before': 'Present if there may be more sessions. Pass it as `before`.' },
      },
    },
    errors: ['invalid_query'],
  },
  readSession: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}',
    summary: 'Read a session',
    description:
      'Returns one session, with its connection fields while it is PENDING or RUNNING, and with `endedAt` and `endReason` after it has ended.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The session.', schema: Session } },
    errors: ['not_found'],
  },
  updateSession: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions/{id}',
    summary: 'Update or release a session',
    description:
      'Ends the session if `status` is `REQUEST_RELEASE`; otherwise changes the metadata or the time limit of a running session. The response to a release is sent once the browser is closed.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    isExemptFromRateLimits: true,
    mount: 'both',
    unknownFields: 'warn',
    params: SessionParams,
    body: UpdateSession,
    bodyExample: { status: 'REQUEST_RELEASE' },
    responses: {
      200: {
        description:
          'The session after the change, without connection fields. On the compatibility mount, a repeated release also returns the ended session.',
        schema: Session,
      },
    },
    errors: ['unknown_field', 'project_mismatch', 'not_found', 'session_not_running'],
  },
  uploadFile: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions/{id}/uploads',
    summary: 'Upload a file into a session',
    description:
      'The browser can read the file at `filePath`, but not change it. Pass that path to a file input. Uploading a file with the same name replaces the earlier one atomically. The size is limited by `maxUploadBytes` of the application, and by 4 GiB for all uploads of a session. If the response is lost, read the session: `uploads` lists the files that arrived.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: SessionParams,
    upload: {
      example: 'cv.pdf',
      description: 'The file. Its name must not contain a path and must have at most 255 bytes.',
    },
    responses: { 200: { description: 'The file was uploaded.', schema: UploadResponse } },
    errors: ['not_found', 'session_not_running', 'missing_file', 'invalid_file'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
