// Every error code: its HTTP status, whether a client may repeat a refused write, and what to do about the error. Codes
// may be added but not renamed.

export interface CatalogueEntry {
  readonly status: number;
  /** The value of `x-should-retry` for a refused write. `yes` only if nothing was done and waiting can help. */
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
    summary: 'The request does not match what the operation expects.',
    whatToDo:
      'Read `details.issues`: each entry has the path of a field, and describes what was wrong and what was expected.',
  },
  invalid_query: {
    status: 400,
    retry: 'no',
    summary: 'A query parameter is unknown to the operation, or the metadata filter `q` could not be parsed.',
    whatToDo:
      "Correct the parameter: the message names the closest match. Write `q` as `user_metadata['key']:'value'` and join several terms with ` AND `.",
  },
  invalid_schema: {
    status: 400,
    retry: 'no',
    summary: 'A JSON Schema in the body is not valid, or exceeds a limit.',
    whatToDo: 'Correct the schema. `details.issues` has the path and a description of each problem.',
  },
  idempotency_key_required: {
    status: 400,
    retry: 'no',
    summary: 'The operation requires the header `Idempotency-Key`, because it changes something or costs money.',
    whatToDo: 'Send a new key for each request, and the same key when you send the same request again.',
  },
  unknown_field: {
    status: 400,
    retry: 'no',
    summary: 'The body has a field that is unknown to the operation.',
    whatToDo: 'Remove the field or correct its spelling. `details.issues` names the field.',
  },
  conflicting_fields: {
    status: 400,
    retry: 'no',
    summary: 'The same setting was given in two places with different values.',
    whatToDo: 'Give the setting in one place only. `details.paths` names both places.',
  },
  missing_file: {
    status: 400,
    retry: 'no',
    summary: 'The upload has no part named `file`.',
    whatToDo: 'Send multipart/form-data with one part named `file` that has a file name.',
  },
  invalid_file: {
    status: 400,
    retry: 'no',
    summary: 'The uploaded file cannot be used.',
    whatToDo: 'The message describes the problem. Correct the file and upload it again.',
  },
  unknown_certificate: {
    status: 400,
    retry: 'no',
    summary: 'The body names a certificate that does not exist in this application.',
    whatToDo: 'Upload the certificate first, or correct the id.',
  },
  unknown_extension: {
    status: 400,
    retry: 'no',
    summary: 'The body names an extension that does not exist in this application.',
    whatToDo: 'Upload the extension first, or correct the id.',
  },
  unknown_context: {
    status: 400,
    retry: 'no',
    summary: 'The body names a context that does not exist in this application.',
    whatToDo: 'Create the context first, or correct the id.',
  },
  proxy_unreachable: {
    status: 400,
    retry: 'no',
    summary: 'The proxy server named in the body could not be used. No browser was started.',
    whatToDo: 'Check the address, user name and password of the proxy.',
  },

  // 400, from the OAuth routes
  authorization_pending: {
    status: 400,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'The person has not yet approved or denied the authorization.',
    whatToDo: 'Send the request again after `interval` seconds.',
  },
  slow_down: {
    status: 400,
    retry: 'yes',
    retryAfterSeconds: 10,
    summary: 'The token was requested again too soon. The polling interval has been increased, up to its maximum.',
    whatToDo: 'Use the number of seconds in `retry-after` as the new polling interval.',
  },
  access_denied: {
    status: 400,
    retry: 'no',
    summary: 'The person denied the authorization.',
    whatToDo: 'Do not repeat the request. Start a new authorization only if the person asks for it.',
  },
  expired_token: {
    status: 400,
    retry: 'no',
    summary: 'The device code expired before a token was issued.',
    whatToDo: 'Start a new device authorization.',
  },
  invalid_grant: {
    status: 400,
    retry: 'no',
    summary:
      'The code or refresh token is unknown, expired, already used or issued to another client, or the code verifier is wrong. If a code is used again, the token or session that was issued for it is revoked.',
    whatToDo: 'Start a new device authorization, or sign in again.',
  },
  invalid_client: {
    status: 400,
    retry: 'no',
    summary: '`client_id` is missing or malformed.',
    whatToDo: 'Send the `client_id` with which the device authorization was started.',
  },
  invalid_scope: {
    status: 400,
    retry: 'no',
    summary: '`scope` contains an unknown scope.',
    whatToDo: 'Use only scopes that exist for tokens, separated by spaces. The message lists them.',
  },
  invalid_target: {
    status: 400,
    retry: 'no',
    summary: '`resource` is not the address of this service.',
    whatToDo: 'Omit `resource`, or send the `baseUrl` that `GET /v1/config` returns.',
  },
  unsupported_grant_type: {
    status: 400,
    retry: 'no',
    summary: '`grant_type` is not the grant type of device authorization.',
    whatToDo: 'Send `urn:ietf:params:oauth:grant-type:device_code`.',
  },

  // 402
  insufficient_credit: {
    status: 402,
    retry: 'no',
    summary:
      'The account does not have enough credit for the hold that is required before the work starts. Nothing was done.',
    whatToDo:
      'Check the credit balance. An owner of the application can buy credit. `details` has `required` and `available` in micro-credits.',
  },

  // 401, 403
  missing_credentials: {
    status: 401,
    retry: 'no',
    summary: 'The request has no credential.',
    whatToDo: 'Send `Authorization: Bearer <credential>`.',
  },
  invalid_credentials: {
    status: 401,
    retry: 'no',
    summary:
      'The credential is not valid: it is malformed, unknown, expired, revoked, or of the wrong kind for this operation.',
    whatToDo:
      'Use an agent key (bak_…) for browser operations, and a personal access token (bpt_…) for account and application operations. Issue a new one if necessary.',
  },
  sign_in_failed: {
    status: 401,
    retry: 'no',
    summary:
      'The password, code, passkey or link is wrong or has expired. For security, the response does not distinguish these cases.',
    whatToDo: 'Check what you entered, or start the sign-in again.',
  },
  insufficient_user_authentication: {
    status: 401,
    retry: 'no',
    summary: 'The operation requires a recent proof of identity from the person who is signed in.',
    whatToDo:
      'Sign in again with the strongest sign-in method of the account, at the address in `details.stepUpUrl`. A consumer signs in again with `session.start`, or with `session.stepUp` on a page of this service.',
  },
  cross_site_request: {
    status: 403,
    retry: 'no',
    summary: 'A request with the sign-in cookie did not come from a page of this service.',
    whatToDo: 'Use the console at the public address of the service. In a program, use a token.',
  },
  origin_not_allowed: {
    status: 403,
    retry: 'no',
    summary: 'A page of another origin sent the request, and the application has not registered that origin.',
    whatToDo:
      'Call from a program, which sends no `Origin` header, or from a page of this service. For consumer requests, add the origin to `origins` in the identity settings of the application.',
  },
  permission_denied: {
    status: 403,
    retry: 'no',
    summary: 'The credential is valid but does not permit this operation.',
    whatToDo: 'Use a credential with the scope or role named in the message.',
  },
  consent_required: {
    status: 403,
    retry: 'no',
    summary: 'The consumer has not allowed the agent key to read or write this memory key.',
    whatToDo: 'Ask the consumer to allow access at the address in `details.consentUrl`.',
  },
  project_mismatch: {
    status: 403,
    retry: 'no',
    summary: "`projectId` is not the id of the agent key's application.",
    whatToDo: 'Omit `projectId`, or use an agent key of that application.',
  },
  address_not_allowed: {
    status: 403,
    retry: 'no',
    summary: 'The credential may not be used from the address of the caller.',
    whatToDo: 'Call from an address in the `cidrAllow` of the credential, or change that list.',
  },
  signed_url_expired: {
    status: 403,
    retry: 'no',
    summary: 'The signed link has expired or was revoked.',
    whatToDo: 'Request a new link: list the files again, or read the live view addresses again.',
  },
  signed_url_invalid: {
    status: 403,
    retry: 'no',
    summary: 'The signed link is not valid: it was changed after it was issued, or does not allow this request.',
    whatToDo: 'Use the link exactly as it was returned, or request a new link.',
  },
  operation_not_granted: {
    status: 403,
    retry: 'no',
    summary: 'The agent key has no grant for this operation.',
    whatToDo: 'List the operations of the key. Ask an admin of the application for a grant.',
  },
  input_not_granted: {
    status: 403,
    retry: 'no',
    summary: 'The grant of the agent key does not allow the input, or a credential may not be typed into this page.',
    whatToDo:
      'Read the operation: `grant.input` is the schema that the input must satisfy, and `grant.credentials` names the credentials that it may use. A credential is typed only into pages of its `origins`.',
  },

  // 404 - 406
  not_found: {
    status: 404,
    retry: 'no',
    summary: 'The resource does not exist, or belongs to another application or account.',
    whatToDo: 'Check the id, and check that the credential belongs to the right application.',
  },
  replay_not_found: {
    status: 404,
    retry: 'no',
    summary: 'The session has no replay of this page.',
    whatToDo: "List the session's replays to see which pages were recorded.",
  },
  recording_not_found: {
    status: 404,
    retry: 'no',
    summary: 'The session has no recording.',
    whatToDo: 'Nothing was recorded in this session. Do not send the request again.',
  },
  route_not_found: {
    status: 404,
    retry: 'no',
    summary: 'No operation has this path.',
    whatToDo: 'See the reference at /docs for all paths.',
  },
  method_not_allowed: {
    status: 405,
    retry: 'no',
    summary: 'The path exists but does not support this method.',
    whatToDo: 'Use one of the methods in the `Allow` header.',
  },
  not_acceptable: {
    status: 406,
    retry: 'no',
    summary: 'The operation cannot return any of the content types in the `Accept` header.',
    whatToDo: 'Accept application/json or application/octet-stream.',
  },

  // 409, 410, 412, 413, 415, 422, 424, 426, 428
  session_not_running: {
    status: 409,
    retry: 'no',
    summary: 'Only a running session can be changed, and this session is not running.',
    whatToDo:
      'Read the session to see its `status` and `endReason`. If it is PENDING, send the request again when it is RUNNING. An ended session cannot be resumed: create a new one.',
  },
  session_not_ended: {
    status: 409,
    retry: 'yes',
    retryAfterSeconds: 2,
    summary: 'The session has not ended yet, or its recording is still being stored.',
    whatToDo: 'Release the session, wait a few seconds and send the request again.',
  },
  context_in_use: {
    status: 409,
    retry: 'no',
    summary: 'Another session uses the context exclusively, or is still saving it.',
    whatToDo:
      'Wait for the session in `details.sessionId` to end. If `details.saving` is present, wait until the context has been saved.',
  },
  context_unreadable: {
    status: 409,
    retry: 'no',
    summary: 'The stored data of this version of the context is damaged.',
    whatToDo: 'Restore an earlier version. Sessions start from the newest version that is readable.',
  },
  context_name_taken: {
    status: 409,
    retry: 'no',
    summary: 'Another context of this application already has this name.',
    whatToDo: 'Choose another name.',
  },
  email_taken: {
    status: 409,
    retry: 'no',
    summary: 'An account with this e-mail address already exists.',
    whatToDo: 'Sign in to that account instead.',
  },
  approval_required: {
    status: 409,
    retry: 'no',
    summary: 'A person must approve calls to this operation. Nothing was started.',
    whatToDo: 'Prepare an Action at `details.prepareUrl`, or wait until the Action is approved.',
  },
  revision_conflict: {
    status: 409,
    retry: 'no',
    summary: 'The request names a revision or version that is not the current one. Nothing was started or written.',
    whatToDo: 'Read the operation or the item again, and send its current revision or version, or omit this field.',
  },
  not_ready: {
    status: 409,
    retry: 'no',
    summary: 'The current state of the resource does not allow the operation, or a requirement is not configured yet.',
    whatToDo: 'Follow the instructions in the message.',
  },
  name_taken: {
    status: 409,
    retry: 'no',
    summary: 'The name or slug is already in use.',
    whatToDo: 'Choose another name or slug.',
  },
  last_owner: {
    status: 409,
    retry: 'no',
    summary: 'The change would leave the application without an owner.',
    whatToDo: 'Make another member an owner first.',
  },
  handoff_exists: {
    status: 409,
    retry: 'no',
    summary: 'The session already has an open hand-off, or a person has control of it in the live view.',
    whatToDo:
      'Wait until the hand-off `details.handoffId` ends. Its requester, or an admin of the application, can cancel it.',
  },
  handoff_claimed: {
    status: 409,
    retry: 'no',
    summary: 'A person has claimed the hand-off, or has control of the session.',
    whatToDo: 'Wait until the hand-off ends: read it with the query parameter `wait`. `details.handoffId` is its id.',
  },
  already_claimed: {
    status: 409,
    retry: 'no',
    summary: 'The link was opened in another browser, and works only there.',
    whatToDo: 'Use that browser, or ask for a new link.',
  },
  stale_fence: {
    status: 409,
    retry: 'no',
    summary: 'The lease has ended: control was returned, or was given to another person.',
    whatToDo: 'If the hand-off is still waiting for a person, claim it again.',
  },
  limit_reached: {
    status: 409,
    retry: 'no',
    summary: 'The limit on the number or the total size of these resources has been reached.',
    whatToDo: 'Remove a resource that is no longer needed. `details.limit` is the limit.',
  },
  digest_mismatch: {
    status: 409,
    retry: 'no',
    summary: 'The digest does not match the Action. Nothing was decided or started.',
    whatToDo: 'Read the Action again, check its content, and send its `digest`.',
  },
  already_prepared: {
    status: 409,
    retry: 'no',
    summary: 'An open Action for the same call already exists.',
    whatToDo: 'Use the Action with the id `details.jobId`, or cancel it first.',
  },
  already_decided: {
    status: 409,
    retry: 'no',
    summary: 'The Action, device authorization, hand-off or checkout was already decided, or is no longer open.',
    whatToDo: 'If a new decision is needed, start again with a new Action, authorization, hand-off or checkout.',
  },
  key_not_rotatable: {
    status: 409,
    retry: 'no',
    summary: 'The agent key has expired, was revoked or was already rotated.',
    whatToDo: 'Rotate the key that replaced it (`details.replacedBy`), or issue a new key.',
  },
  idempotency_conflict: {
    status: 409,
    retry: 'no',
    summary:
      'The idempotency key was already used with a different request, or the first request with it is still running.',
    whatToDo:
      'Use a new idempotency key for a new request. To repeat a request that is still running, wait and send it again.',
  },
  session_ended: {
    status: 410,
    retry: 'no',
    summary: 'The session has ended.',
    whatToDo: 'Create a new session.',
  },
  recording_expired: {
    status: 410,
    retry: 'no',
    summary:
      'The recording was deleted: recordings are kept for a limited time after the end of the session, by default 31 days.',
    whatToDo: 'The recording cannot be restored. Next time, download the recording before it is deleted.',
  },
  expired: {
    status: 410,
    retry: 'no',
    summary: 'The Action can no longer be approved or executed: it was refused or cancelled, or it has expired.',
    whatToDo: 'Read `details.status`. Prepare a new Action if the call is still needed.',
  },
  gone: {
    status: 410,
    retry: 'no',
    summary: 'The resource existed and was deleted.',
    whatToDo: 'The deletion is permanent. Do not send the request again.',
  },
  precondition_failed: {
    status: 412,
    retry: 'no',
    summary: 'The resource has changed since you read it.',
    whatToDo: 'Read the resource again, and send the change with the new `ETag` in `If-Match`.',
  },
  payload_too_large: {
    status: 413,
    retry: 'no',
    summary: 'The body is too large.',
    whatToDo: 'Send a body that is within the limit given in the message. JSON bodies must be smaller than 1 MB.',
  },
  unsupported_media_type: {
    status: 415,
    retry: 'no',
    summary: 'The operation does not accept the content type of the body.',
    whatToDo: 'Send `Content-Type: application/json`, or `multipart/form-data` for an upload.',
  },
  range_not_satisfiable: {
    status: 416,
    retry: 'no',
    summary: 'The `Range` begins after the end of the file.',
    whatToDo: 'Request a range within the size given in `Content-Range`.',
  },
  recording_disabled: {
    status: 422,
    retry: 'no',
    summary: 'Recording was disabled for this session.',
    whatToDo: 'Create the session with `browserSettings.recordSession` set to `true`.',
  },
  verification_failed: {
    status: 422,
    retry: 'no',
    summary: 'The passkey signature is not valid for this Action. No decision was recorded.',
    whatToDo: 'Request the challenge again, and sign it with one of the passkeys of the approver.',
  },
  feature_unavailable: {
    status: 422,
    retry: 'no',
    summary: 'The feature or setting is not available in this installation or application.',
    whatToDo:
      'Follow the advice in the message. `details.field`, if present, names the field or path parameter that asks for the feature.',
  },
  too_costly: {
    status: 422,
    retry: 'no',
    summary: 'The request needs more time or memory than one request may use.',
    whatToDo: 'Request less data at once, or reduce the stored data.',
  },
  credential_missing: {
    status: 424,
    retry: 'no',
    summary:
      'The credential that the operation uses is missing, has expired, or may not be sent to the host of the operation. Nothing was started.',
    whatToDo: 'Ask a developer of the application to correct the credential, or the operation that names it.',
  },
  upgrade_required: {
    status: 426,
    retry: 'no',
    summary: 'This address accepts WebSocket connections only.',
    whatToDo: 'Pass the complete `connectUrl` to a CDP client.',
  },
  precondition_required: {
    status: 428,
    retry: 'no',
    summary: 'The `If-Match` header is missing: a change must name the version that it is based on.',
    whatToDo: 'Read the resource and send its `ETag` as `If-Match`.',
  },

  // 429, 431
  concurrency_limit: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary:
      'A limit on concurrent work has been reached: running sessions, queued session requests, running calls or open Actions. Nothing was started.',
    whatToDo:
      'Wait until some of the work has ended, or release a session. A request to create a session can be queued with `Prefer: wait=SECONDS`.',
  },
  rate_limited: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 10,
    summary: 'Too many requests were sent in a short time. The request had no effect.',
    whatToDo: 'Wait for the number of seconds in `retry-after`, and send the request again.',
  },
  spend_limit: {
    status: 429,
    retry: 'no',
    retryAfterSeconds: 3600,
    summary:
      'The call could exceed the cost that the grant of the agent key allows per day (UTC). Nothing was started.',
    whatToDo:
      'Wait until midnight UTC, send a lower `maxCost`, or ask an admin of the application for a higher limit. `details` contains `limit`, `used` and `required` in micro-credits.',
  },
  client_limit: {
    status: 429,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The session has reached its limit of CDP clients or of viewers.',
    whatToDo: 'Disconnect another client or viewer, and connect again.',
  },
  stream_limit: {
    status: 429,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'The application has reached its limit of open event streams.',
    whatToDo: 'Close another stream. One stream can deliver the events of all sessions of the application.',
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
    summary: 'The service failed unexpectedly.',
    whatToDo: 'Check whether a write took effect before you send it again. Report the `requestId` to the operator.',
  },
  upstream_failed: {
    status: 502,
    retry: 'no',
    summary:
      'An external service of the application, such as an identity provider, could not be reached or sent a response that cannot be used.',
    whatToDo: 'Read the message. Check the external service, then send the request again.',
  },
  recording_service_unavailable: {
    status: 502,
    retry: 'no',
    summary: 'The recording service is unreachable or returned an error.',
    whatToDo: 'Send the request again later.',
  },
  host_unreachable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The host that is running the session does not respond.',
    whatToDo:
      'Read the session, and send the request again if the session is still running. If the host has failed, the session ends within 15 seconds.',
  },
  capacity: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary:
      'No browser is available: all slots are in use, the disk is nearly full, the service is stopping, or the browser is not ready yet. Nothing was created.',
    whatToDo:
      'Wait for a session to end, queue the request with `Prefer: wait=SECONDS`, or ask the operator for more slots.',
  },
  service_stopping: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 2,
    summary: 'The service is stopping. Running sessions continue after the next start.',
    whatToDo: 'Send the request again in a few seconds.',
  },
  busy: {
    status: 503,
    retry: 'yes',
    retryAfterSeconds: 5,
    summary: 'Too much work is queued, or the service is stopping. The request had no effect.',
    whatToDo: 'Send the request again in a few seconds.',
  },
  storage_unreachable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 5,
    summary:
      'The file storage is unreachable or returned an error. Running sessions continue, and no stored data is lost.',
    whatToDo: 'Send the request again in a few seconds. If the error persists, contact the operator.',
  },
  database_unreachable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 2,
    summary: 'The database of the installation does not respond. Running sessions continue.',
    whatToDo:
      'Check whether a write took effect before you send it again. If the error persists, contact the operator.',
  },
  devtools_unavailable: {
    status: 503,
    retry: 'no',
    retryAfterSeconds: 5,
    summary: 'The DevTools files could not be read from the Chromium of this installation. The session continues.',
    whatToDo: 'Send the request again in a few seconds. If the error persists, ask the operator to check the log.',
  },
  browser_start_timeout: {
    status: 504,
    retry: 'no',
    summary:
      'The browser did not start in time. The session ended with the status ERROR and the reason `start_failed`.',
    whatToDo: 'Create a new session. If it happens again, ask the operator to run `berth doctor`.',
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

export type ErrorCode = keyof typeof ERRORS;

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code);

export const catalogueEntry = (code: ErrorCode): CatalogueEntry => ERRORS[code];
