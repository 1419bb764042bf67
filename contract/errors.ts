// Every error code, its HTTP status, whether a client may send a refused write again, and what to do about it.
// Codes are promises: they are added, never renamed.

export interface CatalogueEntry {
  readonly status: number;
  /** `x-should-retry` on a refused write. `yes` only where nothing was done and waiting can help. */
  readonly retry: 'yes' | 'no';
  /** Sent as `retry-after`. */
  readonly retryAfterSeconds?: number;
  readonly summary: string;
  readonly whatToDo: string;
}

export const ERRORS = {
  // 400
  invalid_request: {
    status: 400,
    retry: 'no',
    summary: 'The request is not what the operation expects.',
    whatToDo: 'Read `details.issues`: each names a field, what was wrong with it and what was expected.',
  },
  invalid_query: {
    status: 400,
    retry: 'no',
    summary: 'The operation does not know a query parameter, or the metadata filter `q` could not be read.',
    whatToDo:
      "Correct the spelling: the message names the nearest parameter. Write `q` as `user_metadata['key']:'value'`; several terms are joined with AND between blanks.",
  },
  unknown_field: {
    status: 400,
    retry: 'no',
    summary: 'The body has a field that the operation does not know.',
    whatToDo: 'Remove it or correct its spelling; `details.issues` names it.',
  },
  conflicting_fields: {
    status: 400,
    retry: 'no',
    summary: 'The same setting was given twice with different values.',
    whatToDo: 'Give it in one place only; `details.paths` names both.',
  },
  missing_file: {
    status: 400,
    retry: 'no',
    summary: 'The upload has no part named `file`.',
    whatToDo: 'Send multipart/form-data with one part named `file` that has a filename.',
  },
  invalid_file: {
    status: 400,
    retry: 'no',
    summary: 'The uploaded file cannot be used.',
    whatToDo: 'The message says what is wrong with it. Mend the file and upload it again.',
  },
  unknown_certificate: {
    status: 400,
    retry: 'no',
    summary: 'The body names a certificate that this application does not have.',
    whatToDo: 'Upload the certificate first, or correct the id.',
  },
  unknown_extension: {
    status: 400,
    retry: 'no',
    summary: 'The body names an extension that this application does not have.',
    whatToDo: 'Upload the extension first, or correct the id.',
  },
  unknown_context: {
    status: 400,
    retry: 'no',
    summary: 'The body names a context that this application does not have.',
    whatToDo: 'Create the context first, or correct the id.',
  },
  proxy_unreachable: {
    status: 400,
    retry: 'no',
    summary: 'The proxy server named in the body could not be used. No browser was started.',
    whatToDo: 'Check address, user name and password of the proxy.',
  },

  // 401, 403
  missing_credentials: {
    status: 401,
    retry: 'no',
    summary: 'The request carries no credential.',
    whatToDo: 'Send `Authorization: Bearer <credential>`.',
  },
  invalid_credentials: {
    status: 401,
    retry: 'no',
    summary: 'The credential is not valid here: mistyped, unknown, expired, revoked, or of the wrong kind.',
    whatToDo:
      'Browser routes take an agent key (bak_…), account and application routes a personal access token (bpt_…). Issue a new one if need be.',
  },
  permission_denied: {
    status: 403,
    retry: 'no',
    summary: 'The credential is valid but may not do this.',
    whatToDo: 'Use a credential with the scope or role named in the message.',
  },
  project_mismatch: {
    status: 403,
    retry: 'no',
    summary: "`projectId` is not the agent key's application.",
    whatToDo: 'Leave `projectId` out, or use a key of that application.',
  },
  address_not_allowed: {
    status: 403,
    retry: 'no',
    summary: 'The credential may not be used from this address.',
    whatToDo: 'Call from an address in its `cidrAllow`, or change that list.',
  },
  signed_url_expired: {
    status: 403,
    retry: 'no',
    summary: 'The signed link is older than six hours.',
    whatToDo: 'List again for a fresh link.',
  },
  signed_url_invalid: {
    status: 403,
    retry: 'no',
    summary: 'The signed link was altered.',
    whatToDo: 'Use the link exactly as it was given, or list again for a fresh one.',
  },

  // 404 - 406
  not_found: {
    status: 404,
    retry: 'no',
    summary: 'There is no such thing, or it belongs to somebody else.',
    whatToDo: 'Check the id, and that the credential belongs to the right application.',
  },
  replay_not_found: {
    status: 404,
    retry: 'no',
    summary: 'The session has no replay of that page.',
    whatToDo: "List the session's replays for the pages there are.",
  },
  recording_not_found: {
    status: 404,
    retry: 'no',
    summary: 'The session has no recording.',
    whatToDo: 'Nothing was recorded, and nothing will come. Do not ask again.',
  },
  route_not_found: {
    status: 404,
    retry: 'no',
    summary: 'No operation has this path.',
    whatToDo: 'See the reference at /docs for the paths there are.',
  },
  method_not_allowed: {
    status: 405,
    retry: 'no',
    summary: 'The path exists, but not with this method.',
    whatToDo: 'Use one of the methods in the `Allow` header.',
  },
  not_acceptable: {
    status: 406,
    retry: 'no',
    summary: 'None of the forms in the `Accept` header can be given.',
    whatToDo: 'Ask for application/json or application/octet-stream.',
  },

  // 409, 410, 412, 413, 415, 422, 426, 428
  session_not_running: {
    status: 409,
    retry: 'no',
    summary: 'Only a running session can be changed, and this one is not.',
    whatToDo: 'Read the session for its `status` and `endReason`. Create a new one: an ended session does not resume.',
  },
  session_not_ended: {
    status: 409,
    retry: 'yes',
    retryAfterSeconds: 2,
    summary: 'This is only possible once the session has ended and its recording is stored.',
    whatToDo: 'Release the session, wait some seconds and send the request again.',
  },
  context_in_use: {
    status: 409,
    retry: 'no',
    summary: 'Another session holds the context exclusively, or its save takes longer than could be waited for.',
    whatToDo: 'Wait for the session in `details.sessionId` to end; with `details.saving`, for its save.',
  },
  context_unreadable: {
    status: 409,
    retry: 'no',
    summary: 'The stored data of this version of the context is damaged.',
    whatToDo: 'Restore an earlier version; sessions start from the newest one that can be read.',
  },
  context_name_taken: {
    status: 409,
    retry: 'no',
    summary: 'Another context of this application has this name.',
    whatToDo: 'Choose another name.',
  },
  name_taken: {
    status: 409,
    retry: 'no',
    summary: 'The name or slug is in use.',
    whatToDo: 'Choose another one.',
  },
  limit_reached: {
    status: 409,
    retry: 'no',
    summary: 'There are as many of these as the limit allows.',
    whatToDo: 'Remove one that is no longer needed; `details.limit` is the limit.',
  },
  key_not_rotatable: {
    status: 409,
    retry: 'no',
    summary: 'The agent key has ended, or was rotated already.',
    whatToDo: 'Rotate the key that took its place (`details.replacedBy`), or issue a new one.',
  },
  idempotency_conflict: {
    status: 409,
    retry: 'no',
    summary: 'The idempotency key was used with another body, or its first request still runs.',
    whatToDo: 'Use a new key for a new request.',
  },
  session_ended: {
    status: 410,
    retry: 'no',
    summary: 'The session to connect to has ended.',
    whatToDo: 'Create a new session.',
  },
  recording_expired: {
    status: 410,
    retry: 'no',
    summary: 'Recordings are kept for 31 days after the end of the session.',
    whatToDo: 'Nothing can be done; assemble recordings earlier.',
  },
  gone: {
    status: 410,
    retry: 'no',
    summary: 'The thing existed and was removed.',
    whatToDo: 'It does not come back.',
  },
  precondition_failed: {
    status: 412,
    retry: 'no',
    summary: 'Somebody else changed it since you read it.',
    whatToDo: 'Read it again and send the change with the new `ETag` in `If-Match`.',
  },
  payload_too_large: {
    status: 413,
    retry: 'no',
    summary: 'The body is too large.',
    whatToDo: 'The message names the limit. JSON bodies must be smaller than 1 MB.',
  },
  unsupported_media_type: {
    status: 415,
    retry: 'no',
    summary: 'The body has a content type that the operation does not read.',
    whatToDo: 'Send `Content-Type: application/json`.',
  },
  range_not_satisfiable: {
    status: 416,
    retry: 'no',
    summary: 'The `Range` begins behind the end of the file.',
    whatToDo: 'Ask for a range inside the size that `Content-Range` names.',
  },
  recording_disabled: {
    status: 422,
    retry: 'no',
    summary: 'Recording was disabled for this session',
    whatToDo: 'Create the session with `browserSettings.recordSession` true.',
  },
  feature_unavailable: {
    status: 422,
    retry: 'no',
    summary: 'This installation cannot do what the field asks for, and going on without it would not be safe.',
    whatToDo: 'Leave the field named in `details.field` out.',
  },
  too_costly: {
    status: 422,
    retry: 'no',
    summary: 'What was asked for takes more time or memory than one request may use.',
    whatToDo: 'Ask for less at once, or make what is stored smaller.',
  },
  upgrade_required: {
    status: 426,
    retry: 'no',
    summary: 'This address speaks WebSocket only.',
    whatToDo: 'Give the whole `connectUrl` to a CDP client.',
  },
  precondition_required: {
    status: 428,
    retry: 'no',
    summary: 'The change must say which version it was made from.',
    whatToDo: 'Read the thing and send its `ETag` as `If-Match`.',
  },

  // 429, 431
  concurrency_limit: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'The application has as many running sessions as its limit allows. Nothing was started.',
    whatToDo: 'Release a session, or wait for one to end.',
  },
  rate_limited: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 10,
    summary: 'Too many requests in a short time. Nothing was done.',
    whatToDo: 'Wait for the seconds in `retry-after`.',
  },
  client_limit: {
    status: 429,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The session has as many CDP clients as it may have.',
    whatToDo: 'Disconnect a client first.',
  },
  stream_limit: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'The application has as many event streams open as it may have.',
    whatToDo: 'Close a stream first; one stream of the application tells of all its sessions.',
  },
  headers_too_large: {
    status: 431,
    retry: 'no',
    summary: 'The request headers are too large.',
    whatToDo: 'Send fewer or smaller headers.',
  },

  // 5xx
  internal: {
    status: 500,
    retry: 'no',
    summary: 'Something went wrong on our side.',
    whatToDo: 'Read back what was asked for before sending a write again. Name the `requestId` to the operator.',
  },
  recording_service_unavailable: {
    status: 502,
    retry: 'no',
    summary: 'The recording service did not answer.',
    whatToDo: 'Ask again later.',
  },
  capacity: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'No place for another browser is free on this installation. Nothing was started.',
    whatToDo: 'Wait for a session to end, or ask the operator for more slots.',
  },
  service_stopping: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 2,
    summary: 'The service is stopping. Running sessions wait for the next start.',
    whatToDo: 'Send the request again in a moment.',
  },
  busy: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'Too much work of this kind waits at this installation. Nothing was done.',
    whatToDo: 'Ask again in a moment.',
  },
  storage_unreachable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The store of files does not answer. Running sessions go on, and nothing that was kept is lost.',
    whatToDo: 'Try again in a moment; ask the operator if it lasts.',
  },
  database_unreachable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 2,
    summary: 'The database of the installation does not answer. Running sessions go on.',
    whatToDo: 'Read the thing back before you send a write again; ask the operator if it lasts.',
  },
  devtools_unavailable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The files of DevTools could not be read out of the Chromium of this installation. The session goes on.',
    whatToDo: 'Try again in a moment; ask the operator to look into the log if it lasts.',
  },
  browser_start_timeout: {
    status: 504,
    retry: 'no',
    summary: 'The browser did not start in time. The session ended as ERROR / start_failed.',
    whatToDo: 'Create a new session; if it happens again, ask the operator to run `berth doctor`.',
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

export type ErrorCode = keyof typeof ERRORS;

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code);

export const catalogueEntry = (code: ErrorCode): CatalogueEntry => ERRORS[code];
