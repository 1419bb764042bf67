// The table of operations. Validation, routing, OpenAPI and the reference page are made from it; nothing else lists routes.
import { type Static, type TSchema, Type } from 'typebox';
import {
  AgentKey,
  AgentKeyPage,
  AgentKeyParams,
  ChangeAgentKey,
  CreateAgentKey,
  IssuedAgentKey,
  RotateAgentKey,
} from './agent-keys.ts';
import {
  Application,
  ApplicationPage,
  ApplicationParams,
  CreateApplication,
  RenameApplication,
} from './applications.ts';
import { CERTIFICATE_UPLOAD_BYTES_MAX, Certificate, CertificateParams } from './certificates.ts';
import { IdempotencyHeader, IfMatchHeader, PageQuery, PreferHandlingHeader, PreferWaitHeader } from './common.ts';
import {
  Context,
  ContextParams,
  ContextQuery,
  ContextVersion,
  CreateContext,
  ForkContext,
  RestoreContext,
  StorageState,
} from './contexts.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { EventsQuery, SessionEventPage, SessionEventsQuery } from './events.ts';
import { EXTENSION_UPLOAD_BYTES_MAX, Extension, ExtensionParams } from './extensions.ts';
import {
  Download,
  DownloadPage,
  DownloadParams,
  DownloadsQuery,
  LinkParams,
  RangeHeader,
  UploadAnswer,
} from './files.ts';
import { Limits, ReplaceLimits } from './limits.ts';
import { DebugQuery, DebugUrls } from './live.ts';
import { HAR_TYPE, SessionLog, SessionLogsQuery } from './logs.ts';
import { PICTURE_TYPE, REPLAY_TYPE, RecordingDownloads, ReplayParams, Replays } from './recordings.ts';
import { Health, Readiness, Welcome } from './service.ts';
import {
  BrowserVersion,
  ConnectQuery,
  CreateSession,
  EndedSession,
  Project,
  ProjectParams,
  ProjectUsage,
  Session,
  SessionParams,
  SessionQuery,
  StartedSession,
  StartSession,
  UpdateSession,
} from './sessions.ts';
import { CreateToken, IssuedToken, Token, TokenPage, TokenParams } from './tokens.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `agentKey` bak_…; `account` bpt_…; `connect` the session's own signing key, or an agent key with browsers:connect. */
export type Credential = 'public' | 'agentKey' | 'account' | 'connect';

/** Native paths stand under /v1/browsers; `both` means also where official clients look, under /v1 and /v1/browsers/v1. */
export type Mount = 'native' | 'both' | 'compat';

export const TAGS = {
  Sessions: 'Create browsers, find them again, change and release them.',
  Recordings: 'Watch what was to be seen, while it happens and afterwards.',
  Connect: 'Drive a browser over CDP.',
  'Live view': 'Watch a browser, and take it over.',
  Downloads: 'Files that browsers downloaded.',
  Contexts: 'Keep cookies and storage from one session to the next.',
  Extensions: 'Browser extensions that sessions load.',
  Certificates: 'Certificate authorities that sessions trust.',
  Applications: 'What owns keys, sessions and usage.',
  'Agent keys': 'Credentials of programs that use browsers.',
  Tokens: "Credentials of people's scripts for accounts and applications.",
  Compatibility: "Routes that exist for the field's official clients only.",
  Service: 'Health, metrics and descriptions.',
} as const;
export type Tag = keyof typeof TAGS;

export interface Answer {
  readonly description: string;
  readonly schema?: TSchema;
  /** JSON unless named. */
  readonly contentType?: string;
  /** It may also be the bytes of a file, where the caller accepts those. */
  readonly orBytes?: true;
  /** What a caller gets who accepts server-sent events. */
  readonly asStream?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Upload {
  /** Absent: what the application's limits allow. */
  readonly maxBytes?: number;
  /** A name such a file has. */
  readonly example: string;
  readonly description: string;
}

export interface Operation {
  readonly tag: Tag;
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly credential: Credential;
  /** One of these is enough. */
  readonly scopes?: readonly string[];
  readonly isWrite: boolean;
  readonly mount: Mount;
  /** Served with a slash at the end of the path too. */
  readonly alsoWithSlash?: boolean;
  /** What happens to body fields that the schema does not know. */
  readonly unknownFields?: 'warn' | 'ignore' | 'refuse';
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly bodyExample?: unknown;
  /** The body is multipart/form-data with one part, a file named `file`. */
  readonly upload?: Upload;
  /** It may stand in line for room: `Prefer: wait=SECONDS`. */
  readonly mayWait?: boolean;
  /** Fields of the answer that are never kept for a repetition. */
  readonly secretFields?: readonly string[];
  readonly responses: Readonly<Record<number, Answer>>;
  readonly errors: readonly ErrorCode[];
}

const READ_APPLICATIONS = ['applications:read', 'applications:write', 'keys:write'] as const;
const ETAG = { ETag: 'The revision in quotes; send it as `If-Match` to change it.' } as const;
const ADMITTED = {
  'x-ratelimit-limit': 'The limit that a next create would meet first: of running sessions, or of creates a minute.',
  'x-ratelimit-remaining': 'How many more it allows now.',
  'x-ratelimit-reset': 'Seconds after which it allows more, or after which asking again makes sense.',
  'x-berth-waited': 'With `Prefer: wait`: the milliseconds that the create stood in line.',
} as const;

const STREAMED =
  'With `Accept: text/event-stream` they come as they happen, as server-sent events: `id`, `event` the type, `data` the event as JSON. A comment every 15 seconds shows that the stream lives. `Last-Event-ID` goes on behind an event, and wins over `after`.';

const EVENTS_ANSWER = {
  200: {
    description: 'A page of events.',
    schema: SessionEventPage,
    asStream: 'The events as they happen, without end.',
  },
} as const;

const RECORDING_ERRORS = [
  'not_found',
  'recording_disabled',
  'session_not_ended',
  'recording_expired',
  'recording_not_found',
  'rate_limited',
  'recording_service_unavailable',
] as const;

export const OPERATIONS = {
  // ---- sessions ----------------------------------------------------------------------------------------------------
  createSession: {
    tag: 'Sessions',
    method: 'POST',
    path: '/v1/browsers/sessions',
    summary: 'Create a session',
    description:
      'Starts a browser and answers once it runs. Without `keepAlive` the session ends shortly after its last client has left, and after 300 seconds if none came. When the answer is lost, send the request again only with the same `Idempotency-Key`; without one, list sessions by a unique value in `userMetadata`.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    unknownFields: 'warn',
    body: CreateSession,
    bodyExample: { timeout: 900, keepAlive: true, userMetadata: { run: 'r-1842' } },
    mayWait: true,
    secretFields: ['connectUrl', 'seleniumRemoteUrl', 'signingKey'],
    responses: {
      201: {
        description: 'The session, with its connection fields.',
        schema: Session,
        headers: { Location: 'Path of the session.', ...ADMITTED },
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
      'invalid_file',
      'feature_unavailable',
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
    description: 'Sessions of the application, newest first, without connection fields. A bare array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    query: SessionQuery,
    responses: {
      200: {
        description: 'The sessions; `[]` when none matches.',
        schema: Type.Array(Session),
        headers: { 'x-next-before': 'Present when there may be more: pass it as `before`.' },
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
      'One session; with its connection fields while PENDING or RUNNING, with `endedAt` and `endReason` once ended.',
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
      'Ends the session with `status` `REQUEST_RELEASE`, or changes its metadata or time limit while it runs. A release is answered once the browser is closed.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    unknownFields: 'warn',
    params: SessionParams,
    body: UpdateSession,
    bodyExample: { status: 'REQUEST_RELEASE' },
    responses: {
      200: {
        description:
          'The session as it is now, without connection fields. On the compatibility mount a repeated release answers the ended session too.',
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
      'The browser reads it, and cannot change it, at `filePath`: give that path to a file input. The same name replaces the file at once and as a whole. It is streamed: its size is bounded by `maxUploadBytes` of the application and by 4 GiB for a session together. When the answer is lost, read the session: `uploads` lists what arrived.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: SessionParams,
    upload: { example: 'cv.pdf', description: 'The file. Its name must be a plain one, of at most 255 bytes.' },
    responses: { 200: { description: 'The file is there.', schema: UploadAnswer } },
    errors: ['not_found', 'session_not_running', 'missing_file', 'invalid_file'],
  },
  listSessionEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/events',
    summary: "Read a session's events",
    description: `What happened to the session, oldest first; kept for 31 days after its end. ${STREAMED} The stream begins with the first event and is closed behind \`session.ended\`; asked for again behind that one, it answers 204. What is settled later, such as the save of its context, stands in the list and in the stream of all sessions.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: SessionEventsQuery,
    responses: EVENTS_ANSWER,
    errors: ['not_found', 'stream_limit'],
  },
  listEvents: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/events',
    summary: 'Read events of all sessions',
    description: `The same for every session of the application. ${STREAMED} Without \`after\` the stream begins now; \`after=0\` begins with the oldest event there is.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    query: EventsQuery,
    responses: EVENTS_ANSWER,
    errors: ['stream_limit'],
  },
  listSessionLogs: {
    tag: 'Sessions',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/logs',
    summary: "Read a session's log",
    description: `Console, network and page events of every page, popup, frame and worker, and the commands of clients: a bare array, oldest first, for running and ended sessions, kept for 31 days after the end. What was secret in it was taken out before it was stored: credentials, cookies, what was typed. With \`Accept: ${HAR_TYPE}\` or \`format=har\` it is a HAR 1.2 file of the network part. With \`Accept: text/event-stream\` the entries come as they happen, as server-sent events: \`id\` the place in the log, \`event\` the method, \`data\` the entry. \`Last-Event-ID\` goes on behind an entry, and wins over \`after\`. The stream is closed behind the last entry of a session that has ended; asked for again, it answers 204.`,
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    query: SessionLogsQuery,
    responses: {
      200: {
        description: 'The entries.',
        schema: Type.Array(SessionLog),
        asStream: 'The entries as they happen, until the session has ended.',
        headers: {
          'x-next-after': 'Where this answer ends: pass it as `after`, at once or later, to get what follows.',
          'x-logging': '`disabled`: the session was made with `logSession` false. `expired`: 31 days have passed.',
        },
      },
    },
    errors: ['not_found', 'stream_limit'],
  },

  // ---- recordings --------------------------------------------------------------------------------------------------
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
    responses: { 200: { description: 'The playlist.', contentType: REPLAY_TYPE } },
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
    scopes: ['browsers:write', 'browsers:read'],
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
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    responses: { 200: { description: 'The files.', schema: RecordingDownloads } },
    errors: RECORDING_ERRORS,
  },

  // ---- connect -----------------------------------------------------------------------------------------------------
  connectSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect',
    summary: 'Connect over CDP',
    description:
      'The WebSocket of a session: give the whole `connectUrl` to Playwright, Puppeteer or any CDP client. A session that is still PENDING is waited for, up to 30 seconds. Close codes: 1000 released, 4001 timed out, 4002 crashed, 4003 idle, 1001 the service restarts.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 101: { description: 'The WebSocket is open.' } },
    errors: ['not_found', 'session_ended', 'upgrade_required', 'client_limit', 'capacity'],
  },
  discoverSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect/json/version',
    alsoWithSlash: true,
    summary: 'Discover the CDP address',
    description:
      'For clients that are given the connect address as http(s) and look up the WebSocket address themselves. With a trailing slash as well.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 200: { description: 'What a browser answers at /json/version.', schema: BrowserVersion } },
    errors: ['not_found', 'session_ended'],
  },

  // ---- downloads ---------------------------------------------------------------------------------------------------
  listDownloads: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/downloads',
    summary: 'List downloads of a session',
    description:
      'Complete files, while the session runs and for 31 days after its end, whatever download folder a client has named. A file is listed within two seconds of its completion.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    query: DownloadsQuery,
    responses: { 200: { description: 'A page of downloads.', schema: DownloadPage } },
    errors: ['not_found'],
  },
  readDownload: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/downloads/{id}',
    summary: 'Read a download, or its bytes',
    description:
      'What is known of it as JSON; with `Accept: application/octet-stream` its bytes, with `Range` a part of them. Of both the one with the higher q-value.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: DownloadParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The download.', schema: Download, orBytes: true },
      206: { description: 'The part that was asked for.', contentType: 'application/octet-stream' },
      304: { description: 'It is the one that you have.' },
    },
    errors: ['not_found', 'not_acceptable', 'range_not_satisfiable', 'storage_unreachable'],
  },
  deleteDownload: {
    tag: 'Downloads',
    method: 'DELETE',
    path: '/v1/browsers/downloads/{id}',
    summary: 'Delete a download',
    description: 'Its bytes go too, and links to it end.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: DownloadParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found', 'storage_unreachable'],
  },
  readLinkedFile: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/files/{token}',
    summary: 'Read the file of a signed link',
    description:
      'What a `downloadUrl` leads to. Needs no key, and may be read from pages of any origin. Ends after 6 hours, and when the file is deleted.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    params: LinkParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The bytes.', contentType: 'application/octet-stream' },
      206: { description: 'The part that was asked for.', contentType: 'application/octet-stream' },
      304: { description: 'It is the one that you have.' },
    },
    errors: ['signed_url_invalid', 'signed_url_expired', 'not_found', 'range_not_satisfiable', 'storage_unreachable'],
  },
  archiveDownloads: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/sessions/{id}/downloads',
    summary: 'All downloads of a session in one archive',
    description: 'A zip, oldest file first; of several with one name the later ones get a number. Empty without any.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'compat',
    params: SessionParams,
    responses: { 200: { description: 'The archive.', contentType: 'application/zip' } },
    errors: ['not_found'],
  },

  // ---- extensions --------------------------------------------------------------------------------------------------
  uploadExtension: {
    tag: 'Extensions',
    method: 'POST',
    path: '/v1/browsers/extensions',
    summary: 'Upload an extension',
    description:
      'Keeps an extension for sessions that name it in `extensionIds`. A zip with `manifest.json` at its root, or a .crx of version 3 whose signature is right; manifest version 3. The whole archive is read first: `details.reason` of a refusal is a word for each thing that can be wrong. At most 1000 per application; one that no session names for 90 days is deleted, unless the operator says otherwise.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: EXTENSION_UPLOAD_BYTES_MAX,
      example: 'extension.zip',
      description: 'A .zip or .crx of at most 100 MB, with at most 10,000 entries, that unpacks to at most 500 MB.',
    },
    responses: { 200: { description: 'The extension.', schema: Extension } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  readExtension: {
    tag: 'Extensions',
    method: 'GET',
    path: '/v1/browsers/extensions/{id}',
    summary: 'Read an extension',
    description: 'One extension; never its files.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: ExtensionParams,
    responses: { 200: { description: 'The extension.', schema: Extension } },
    errors: ['not_found'],
  },
  deleteExtension: {
    tag: 'Extensions',
    method: 'DELETE',
    path: '/v1/browsers/extensions/{id}',
    summary: 'Delete an extension',
    description: 'Sessions that run keep their copy; a create that names it is refused from now on.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: ExtensionParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found'],
  },

  // ---- certificates ------------------------------------------------------------------------------------------------
  uploadCertificate: {
    tag: 'Certificates',
    method: 'POST',
    path: '/v1/browsers/certificates',
    summary: 'Upload certificates',
    description:
      'Keeps certificate authorities for sessions that name the upload in `proxySettings.caCertificates`. Certificates that are no authority, or have expired, are taken with a warning. A file with a private key in it is refused. At most 1000 uploads per application; kept until deleted.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    upload: {
      maxBytes: CERTIFICATE_UPLOAD_BYTES_MAX,
      example: 'ca.pem',
      description: 'PEM, one or more certificates, at most 1 MB.',
    },
    responses: { 200: { description: 'The certificates that were read.', schema: Certificate } },
    errors: ['missing_file', 'invalid_file', 'limit_reached'],
  },
  listCertificates: {
    tag: 'Certificates',
    method: 'GET',
    path: '/v1/browsers/certificates',
    summary: 'List certificates',
    description: 'All uploads of the application, newest first; never the certificates themselves. A bare array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    responses: { 200: { description: 'The uploads.', schema: Type.Array(Certificate) } },
    errors: [],
  },
  readCertificate: {
    tag: 'Certificates',
    method: 'GET',
    path: '/v1/browsers/certificates/{id}',
    summary: 'Read certificates',
    description: 'One upload.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: CertificateParams,
    responses: { 200: { description: 'The upload.', schema: Certificate } },
    errors: ['not_found'],
  },
  deleteCertificate: {
    tag: 'Certificates',
    method: 'DELETE',
    path: '/v1/browsers/certificates/{id}',
    summary: 'Delete certificates',
    description: 'Sessions that run go on trusting them; a create that names them is refused from now on.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: CertificateParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found'],
  },

  // ---- contexts ----------------------------------------------------------------------------------------------------
  createContext: {
    tag: 'Contexts',
    method: 'POST',
    path: '/v1/browsers/contexts',
    summary: 'Create a context',
    description:
      'An empty place for cookies and storage. A session that names it in `browserSettings.context` with `persist` fills it when it ends.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    body: CreateContext,
    bodyExample: { name: 'shop-login' },
    responses: { 201: { description: 'The context.', schema: Context } },
    errors: ['project_mismatch', 'context_name_taken', 'limit_reached'],
  },
  listContexts: {
    tag: 'Contexts',
    method: 'GET',
    path: '/v1/browsers/contexts',
    summary: 'List contexts',
    description: 'Contexts of the application, newest first. A bare array.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    query: ContextQuery,
    responses: {
      200: {
        description: 'The contexts.',
        schema: Type.Array(Context),
        headers: { 'x-next-before': 'Present when there may be more: pass it as `before`.' },
      },
    },
    errors: [],
  },
  readContext: {
    tag: 'Contexts',
    method: 'GET',
    path: '/v1/browsers/contexts/{id}',
    summary: 'Read a context',
    description: '`version` grows, and `lastSessionId` names the session, once its save is done.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'both',
    params: ContextParams,
    responses: { 200: { description: 'The context.', schema: Context } },
    errors: ['not_found'],
  },
  deleteContext: {
    tag: 'Contexts',
    method: 'DELETE',
    path: '/v1/browsers/contexts/{id}',
    summary: 'Delete a context',
    description:
      'Destroys its key, and with it every version, irrevocably. Sessions that run on a copy go on; what they would save is discarded.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'both',
    params: ContextParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found'],
  },
  listContextVersions: {
    tag: 'Contexts',
    method: 'GET',
    path: '/v1/browsers/contexts/{id}/versions',
    summary: 'List versions of a context',
    description: 'The newest and up to five earlier ones, which are kept for seven days. A bare array, newest first.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'native',
    params: ContextParams,
    responses: { 200: { description: 'The versions.', schema: Type.Array(ContextVersion) } },
    errors: ['not_found'],
  },
  restoreContext: {
    tag: 'Contexts',
    method: 'POST',
    path: '/v1/browsers/contexts/{id}/restore',
    summary: 'Restore an earlier version',
    description: 'Makes the earlier version the newest one. The one that was newest stays as an earlier one.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ContextParams,
    body: RestoreContext,
    bodyExample: { version: 3 },
    responses: { 200: { description: 'The context as it is now.', schema: Context } },
    errors: ['not_found'],
  },
  forkContext: {
    tag: 'Contexts',
    method: 'POST',
    path: '/v1/browsers/contexts/{id}/fork',
    summary: 'Fork a context',
    description: 'A new context with a copy of one version, encrypted under a key of its own.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ContextParams,
    body: ForkContext,
    bodyExample: { name: 'shop-login-copy' },
    responses: { 201: { description: 'The new context.', schema: Context } },
    errors: ['not_found', 'context_name_taken', 'limit_reached', 'context_unreadable'],
  },
  exportContext: {
    tag: 'Contexts',
    method: 'GET',
    path: '/v1/browsers/contexts/{id}/storage-state',
    summary: 'Export as storage state',
    description:
      "Cookies and local storage of the newest version as Playwright's `storageState` JSON. IndexedDB, caches and service workers are not in it. Treat it as a password.",
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: false,
    mount: 'native',
    params: ContextParams,
    responses: { 200: { description: 'The storage state.', schema: StorageState } },
    errors: ['not_found', 'context_unreadable'],
  },
  importContext: {
    tag: 'Contexts',
    method: 'POST',
    path: '/v1/browsers/contexts/{id}/storage-state',
    summary: 'Import a storage state',
    description:
      "Makes a new version of exactly what Playwright's `storageState` JSON holds: cookies and local storage, nothing of before.",
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'native',
    params: ContextParams,
    body: StorageState,
    bodyExample: {
      cookies: [
        {
          name: 'sid',
          value: '…',
          domain: 'shop.example',
          path: '/',
          expires: -1,
          httpOnly: true,
          secure: true,
          sameSite: 'Lax',
        },
      ],
      origins: [],
    },
    responses: { 200: { description: 'The context as it is now.', schema: Context } },
    errors: ['not_found'],
  },

  // ---- live view ---------------------------------------------------------------------------------------------------
  debugSession: {
    tag: 'Live view',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/debug',
    summary: 'Get live view addresses',
    description:
      'Addresses at which people watch a running session and, where they may, take control of it; one for the session and one for each open page. Ask again for fresh ones.',
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    query: DebugQuery,
    responses: { 200: { description: 'The addresses.', schema: DebugUrls } },
    errors: ['not_found', 'session_not_running'],
  },
  revokeDebug: {
    tag: 'Live view',
    method: 'DELETE',
    path: '/v1/browsers/sessions/{id}/debug',
    summary: 'Revoke live view addresses',
    description: 'Every address that was given out for this session stops working, and who came by one is shown out.',
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: true,
    mount: 'native',
    params: SessionParams,
    responses: { 204: { description: 'They are revoked.' } },
    errors: ['not_found', 'session_not_running'],
  },

  // ---- applications ------------------------------------------------------------------------------------------------
  listApplications: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications',
    summary: 'List applications',
    description: 'Those that the account is a member of and the token may reach, newest first.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    query: PageQuery,
    responses: { 200: { description: 'A page of applications.', schema: ApplicationPage } },
    errors: [],
  },
  createApplication: {
    tag: 'Applications',
    method: 'POST',
    path: '/v1/applications',
    summary: 'Create an application',
    description: 'The caller becomes its owner; its account is billed. At most 50 per account.',
    credential: 'account',
    scopes: ['applications:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: CreateApplication,
    bodyExample: { name: 'Shop agent' },
    responses: { 201: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['name_taken', 'limit_reached'],
  },
  readApplication: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications/{appId}',
    summary: 'Read an application',
    description: 'One application, with its revision as `ETag`.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['not_found'],
  },
  renameApplication: {
    tag: 'Applications',
    method: 'PATCH',
    path: '/v1/applications/{appId}',
    summary: 'Rename an application',
    description: 'Needs the role admin. The slug stays.',
    credential: 'account',
    scopes: ['applications:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    headers: IfMatchHeader,
    body: RenameApplication,
    bodyExample: { name: 'Shop agent, Europe' },
    responses: { 200: { description: 'The application.', schema: Application, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },

  // ---- limits ------------------------------------------------------------------------------------------------------
  readLimits: {
    tag: 'Applications',
    method: 'GET',
    path: '/v1/applications/{appId}/limits',
    summary: 'Read limits',
    description: 'What the application may use, what holds under the ceiling of the operator, and what is used now.',
    credential: 'account',
    scopes: [...READ_APPLICATIONS, 'limits:write'],
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    responses: { 200: { description: 'The limits.', schema: Limits, headers: ETAG } },
    errors: ['not_found'],
  },
  replaceLimits: {
    tag: 'Applications',
    method: 'PUT',
    path: '/v1/applications/{appId}/limits',
    summary: 'Replace limits',
    description:
      'Replaces what is configured: a member that is left out has its default. Holds from the next create on; a limit below its use ends nothing. Needs the role owner.',
    credential: 'account',
    scopes: ['limits:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    headers: IfMatchHeader,
    body: ReplaceLimits,
    bodyExample: { browsers: { maxConcurrent: 25, maxCreatesPerMinute: 120, maxWaiting: 50 } },
    responses: { 200: { description: 'The limits.', schema: Limits, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },

  // ---- agent keys --------------------------------------------------------------------------------------------------
  listAgentKeys: {
    tag: 'Agent keys',
    method: 'GET',
    path: '/v1/applications/{appId}/agent-keys',
    summary: 'List agent keys',
    description: 'Living keys and those that ended in the last 90 days, newest first; never the keys themselves.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: ApplicationParams,
    query: PageQuery,
    responses: { 200: { description: 'A page of keys.', schema: AgentKeyPage } },
    errors: ['not_found'],
  },
  createAgentKey: {
    tag: 'Agent keys',
    method: 'POST',
    path: '/v1/applications/{appId}/agent-keys',
    summary: 'Issue an agent key',
    description: 'Needs the role developer. The key is in this answer only. At most 200 living keys per application.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: ApplicationParams,
    body: CreateAgentKey,
    bodyExample: { name: 'nightly', scopes: ['browsers:read', 'browsers:write', 'browsers:connect'] },
    secretFields: ['key'],
    responses: { 201: { description: 'The key, with its secret.', schema: IssuedAgentKey, headers: ETAG } },
    errors: ['not_found', 'limit_reached'],
  },
  readAgentKey: {
    tag: 'Agent keys',
    method: 'GET',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Read an agent key',
    description: 'One key, never the secret.',
    credential: 'account',
    scopes: READ_APPLICATIONS,
    isWrite: false,
    mount: 'native',
    params: AgentKeyParams,
    responses: { 200: { description: 'The key.', schema: AgentKey, headers: ETAG } },
    errors: ['not_found'],
  },
  changeAgentKey: {
    tag: 'Agent keys',
    method: 'PATCH',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Change an agent key',
    description: 'Name, address ranges, or an earlier end. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: AgentKeyParams,
    headers: IfMatchHeader,
    body: ChangeAgentKey,
    bodyExample: { name: 'nightly, Europe' },
    responses: { 200: { description: 'The key.', schema: AgentKey, headers: ETAG } },
    errors: ['not_found', 'precondition_failed', 'precondition_required'],
  },
  revokeAgentKey: {
    tag: 'Agent keys',
    method: 'DELETE',
    path: '/v1/applications/{appId}/agent-keys/{keyId}',
    summary: 'Revoke an agent key',
    description: 'At once, in every process. Running sessions go on. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    params: AgentKeyParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['not_found'],
  },
  rotateAgentKey: {
    tag: 'Agent keys',
    method: 'POST',
    path: '/v1/applications/{appId}/agent-keys/{keyId}/rotate',
    summary: 'Rotate an agent key',
    description: 'Issues a key with the same rights; the old one ends after the grace. Needs the role developer.',
    credential: 'account',
    scopes: ['keys:write'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    params: AgentKeyParams,
    body: RotateAgentKey,
    bodyExample: { graceSeconds: 600 },
    secretFields: ['key'],
    responses: { 201: { description: 'The new key, with its secret.', schema: IssuedAgentKey, headers: ETAG } },
    errors: ['not_found', 'limit_reached', 'precondition_failed'],
  },

  // ---- tokens ------------------------------------------------------------------------------------------------------
  listTokens: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens',
    summary: 'List tokens',
    description: "The account's tokens, newest first; never the tokens themselves.",
    credential: 'account',
    isWrite: false,
    mount: 'native',
    query: PageQuery,
    responses: { 200: { description: 'A page of tokens.', schema: TokenPage } },
    errors: [],
  },
  createToken: {
    tag: 'Tokens',
    method: 'POST',
    path: '/v1/account/tokens',
    summary: 'Issue a token',
    description:
      'With at most the rights of the calling token. The token is in this answer only. At most 100 living tokens per account.',
    credential: 'account',
    scopes: ['account:tokens'],
    isWrite: true,
    mount: 'native',
    unknownFields: 'refuse',
    body: CreateToken,
    bodyExample: { name: 'ci', scopes: ['applications:read', 'keys:write'] },
    secretFields: ['token'],
    responses: { 201: { description: 'The token, with its secret.', schema: IssuedToken } },
    errors: ['limit_reached'],
  },
  readCurrentToken: {
    tag: 'Tokens',
    method: 'GET',
    path: '/v1/account/tokens/current',
    summary: 'Read the calling token',
    description: 'The credential that this very request was made with.',
    credential: 'account',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The calling token.', schema: Token } },
    errors: [],
  },
  revokeToken: {
    tag: 'Tokens',
    method: 'DELETE',
    path: '/v1/account/tokens/{id}',
    summary: 'Revoke a token',
    description: 'At once, in every process. A second time answers 404.',
    credential: 'account',
    isWrite: true,
    mount: 'native',
    params: TokenParams,
    responses: { 204: { description: 'Revoked.' } },
    errors: ['not_found'],
  },

  // ---- compatibility -----------------------------------------------------------------------------------------------
  listProjects: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects',
    summary: 'List projects',
    description: "The key's own application, as a list of one.",
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    responses: { 200: { description: 'A bare array.', schema: Type.Array(Project) } },
    errors: [],
  },
  readProject: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects/{id}',
    summary: 'Read a project',
    description: "The key's own application.",
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    params: ProjectParams,
    responses: { 200: { description: 'The project.', schema: Project } },
    errors: ['not_found'],
  },
  readProjectUsage: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/projects/{id}/usage',
    summary: 'Read usage',
    description: 'What the application has used so far.',
    credential: 'agentKey',
    scopes: ['browsers:read'],
    isWrite: false,
    mount: 'compat',
    params: ProjectParams,
    responses: { 200: { description: 'Minutes and bytes.', schema: ProjectUsage } },
    errors: ['not_found'],
  },
  startSession: {
    tag: 'Compatibility',
    method: 'POST',
    path: '/v1/sessions/start',
    summary: 'Start (Stagehand 3)',
    description:
      "Creates a session from `browserbaseSessionCreateParams`, or takes the one in `browserbaseSessionID`, and tells the client to run its own steps. Everything else in the body is ignored; the client's model key is neither kept nor logged.",
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'compat',
    unknownFields: 'ignore',
    body: StartSession,
    bodyExample: { browserbaseSessionCreateParams: { keepAlive: true } },
    mayWait: true,
    responses: { 200: { description: 'Created or taken.', schema: StartedSession, headers: ADMITTED } },
    errors: [
      'conflicting_fields',
      'project_mismatch',
      'unknown_context',
      'context_in_use',
      'unknown_certificate',
      'unknown_extension',
      'invalid_file',
      'feature_unavailable',
      'not_found',
      'concurrency_limit',
      'rate_limited',
      'capacity',
      'browser_start_timeout',
    ],
  },
  endSession: {
    tag: 'Compatibility',
    method: 'POST',
    path: '/v1/sessions/{id}/end',
    summary: 'End (Stagehand 3)',
    description: 'Releases the session. An ended one is fine too.',
    credential: 'agentKey',
    scopes: ['browsers:write'],
    isWrite: true,
    mount: 'compat',
    unknownFields: 'ignore',
    params: SessionParams,
    body: Type.Object({}),
    responses: { 200: { description: 'Ended.', schema: EndedSession } },
    errors: ['not_found'],
  },

  // ---- service -----------------------------------------------------------------------------------------------------
  welcome: {
    tag: 'Service',
    method: 'GET',
    path: '/',
    summary: 'Where you are',
    description: 'Name, version and where the reference is. A browser gets a page.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The service.', schema: Welcome } },
    errors: [],
  },
  readHealth: {
    tag: 'Service',
    method: 'GET',
    path: '/healthz',
    summary: 'Health',
    description: 'The process lives.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'It does.', schema: Health } },
    errors: [],
  },
  readReadiness: {
    tag: 'Service',
    method: 'GET',
    path: '/readyz',
    summary: 'Readiness',
    description: 'The database answers and browsers can be started.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'Ready.', schema: Readiness },
      503: { description: 'Not ready; the checks say why.', schema: Readiness },
    },
    errors: [],
  },
  readMetrics: {
    tag: 'Service',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics',
    description: 'For Prometheus.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'Text exposition format.', contentType: 'text/plain' } },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;

export type OperationId = keyof typeof OPERATIONS;

export const OPERATION_IDS = Object.keys(OPERATIONS) as readonly OperationId[];

export const operation = (id: OperationId): Operation => OPERATIONS[id];

type Part<
  Id extends OperationId,
  Name extends 'params' | 'query' | 'headers' | 'body',
> = (typeof OPERATIONS)[Id] extends { readonly [Key in Name]: infer Schema extends TSchema }
  ? Static<Schema>
  : undefined;

/** What a validated request of an operation holds. */
export interface Asked<Id extends OperationId> {
  readonly params: Part<Id, 'params'>;
  readonly query: Part<Id, 'query'>;
  readonly headers: Part<Id, 'headers'>;
  readonly body: Part<Id, 'body'>;
}

/** Whether a request with the same `Idempotency-Key` gets the answer of the first. */
export function isRepeatable(id: OperationId): boolean {
  const { method, credential } = operation(id);
  return method === 'POST' && (credential === 'agentKey' || credential === 'account');
}

/** Headers that any request may have, whatever the operation: described, and read by who honours them. */
export function optionalHeadersOf(id: OperationId): TSchema {
  const { mayWait, unknownFields } = operation(id);
  return Type.Object({
    ...(isRepeatable(id) ? IdempotencyHeader : {}),
    ...(mayWait ? PreferWaitHeader : unknownFields === 'warn' ? PreferHandlingHeader : {}),
  });
}

/** Every code an operation can answer: its own, and those that follow from how it is called. */
export function errorsOf(id: OperationId): readonly ErrorCode[] {
  const { body, upload, query, headers, credential, scopes, errors } = operation(id);
  const codes = new Set<ErrorCode>(errors);
  if (isRepeatable(id)) codes.add('invalid_request').add('idempotency_conflict');
  if (body || query || headers) codes.add('invalid_request');
  if (operation(id).unknownFields === 'refuse') codes.add('unknown_field');
  if (upload) codes.add('rate_limited');
  if (body || upload) codes.add('payload_too_large').add('unsupported_media_type');
  if (credential !== 'public') codes.add('missing_credentials').add('invalid_credentials');
  if (scopes || credential === 'connect') codes.add('permission_denied');
  codes.add('internal');
  return [...codes].sort((a, b) => ERRORS[a].status - ERRORS[b].status || a.localeCompare(b));
}

const NATIVE_PREFIX = '/v1/browsers/';
export const COMPAT_PREFIXES = ['/v1/', '/v1/browsers/v1/'] as const;

/** Every path an operation is served at; the native one first. */
export function pathsOf(id: OperationId, compat: boolean): ReadonlyArray<{ path: string; mount: 'native' | 'compat' }> {
  const { path, mount } = operation(id);
  const native = mount === 'compat' ? [] : [{ path, mount: 'native' as const }];
  if (mount === 'native' || !compat) return native;
  const tail = path.slice(mount === 'compat' ? COMPAT_PREFIXES[0].length : NATIVE_PREFIX.length);
  return [...native, ...COMPAT_PREFIXES.map(prefix => ({ path: `${prefix}${tail}`, mount: 'compat' as const }))];
}
