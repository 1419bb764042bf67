// Device authorization (RFC 8628): start, read, decide, collect the token.
import {
  CollectedToken,
  CollectToken,
  DEVICE_GRANT_TYPE,
  DecideDevice,
  DecidedDevice,
  DeviceParams,
  DeviceRequest,
  DeviceState,
  DeviceStatusQuery,
  StartDevice,
  StartedDevice,
  UserCodeQuery,
} from '../device.ts';
import type { Operation } from '../operation.ts';

const DEVICE = { tag: 'Device authorization', mount: 'native' } as const;

export const DEVICE_OPERATIONS = {
  startDeviceAuthorization: {
    ...DEVICE,
    method: 'POST',
    path: '/v1/device/authorizations',
    summary: 'Start a device authorization',
    description:
      'Returns a code for a person to approve in a browser, and a device code with which the program collects the token (RFC 8628). Codes are valid for ten minutes. Unknown parameters are ignored. At most 30 requests per minute from one IP address.',
    credential: 'public',
    isWrite: true,
    oauth: true,
    body: StartDevice,
    bodyExample: { client_id: 'my-agent', scope: 'applications:read keys:write' },
    responses: {
      200: { description: 'The authorization was started by a request with a form body.', schema: StartedDevice },
      201: { description: 'The authorization was started.', schema: StartedDevice },
    },
    errors: ['invalid_scope', 'invalid_target', 'rate_limited', 'busy', 'database_unreachable'],
  },
  readDeviceRequest: {
    ...DEVICE,
    method: 'GET',
    path: '/v1/device/authorizations',
    summary: 'Read and claim a device authorization',
    description:
      'Returns what the program with this code requests. The first person who reads the request claims it: from then on, it does not exist for anyone else. After ten wrong codes within ten minutes, by one person or from one IP address, the status is 429.',
    credential: 'human',
    isWrite: true,
    query: UserCodeQuery,
    responses: { 200: { description: 'What the program requests.', schema: DeviceRequest } },
    errors: ['not_found', 'rate_limited', 'cross_site_request'],
  },
  readDeviceState: {
    ...DEVICE,
    method: 'GET',
    path: '/v1/device/authorizations/{id}',
    summary: 'Read the state of a device authorization',
    description:
      'For the program that requests the token: returns whether the person has decided, without collecting the token. The credential is the device code. Without `wait`, requests that are sent less than `interval` seconds apart are refused.',
    credential: 'deviceCode',
    isWrite: false,
    params: DeviceParams,
    query: DeviceStatusQuery,
    responses: { 200: { description: 'The state of the authorization.', schema: DeviceState } },
    errors: ['not_found', 'rate_limited'],
  },
  decideDeviceAuthorization: {
    ...DEVICE,
    method: 'POST',
    path: '/v1/device/approvals',
    summary: 'Approve or deny a device authorization',
    description:
      'Approves or denies the request of a program. Only the person who has read the request can approve it. Approving also requires a recent proof of identity, and is refused if the request is known to come from the browser of a session.',
    credential: 'human',
    isWrite: true,
    unknownFields: 'refuse',
    body: DecideDevice,
    bodyExample: {
      userCode: 'KQTM-7HXD',
      decision: 'approve',
      applicationIds: ['0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10'],
    },
    responses: { 200: { description: 'The request was approved or denied.', schema: DecidedDevice } },
    errors: [
      'not_found',
      'already_decided',
      'permission_denied',
      'insufficient_user_authentication',
      'rate_limited',
      'cross_site_request',
    ],
  },
  collectDeviceToken: {
    ...DEVICE,
    method: 'POST',
    path: '/v1/device/tokens',
    summary: 'Collect the token of a device authorization',
    description:
      'The token endpoint (RFC 6749, RFC 8628). Repeat the request every `interval` seconds while the response is `authorization_pending`; after each `slow_down`, increase the interval by five seconds. The token is issued once. If the device code is sent again after that, the token is revoked.',
    credential: 'public',
    isWrite: true,
    oauth: true,
    body: CollectToken,
    bodyExample: { grant_type: DEVICE_GRANT_TYPE, device_code: 'bdc_…', client_id: 'my-agent' },
    responses: { 200: { description: 'The token.', schema: CollectedToken } },
    errors: [
      'authorization_pending',
      'slow_down',
      'access_denied',
      'expired_token',
      'invalid_grant',
      'invalid_client',
      'unsupported_grant_type',
      'limit_reached',
      'rate_limited',
      'database_unreachable',
    ],
  },
} as const satisfies Readonly<Record<string, Operation>>;
