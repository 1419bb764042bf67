// Log entries for network events: the fields that a HAR file needs, without bodies, cookies or credentials.
import { isObject, type JsonObject } from '../../kit/json.ts';
import { redactHeaders, redactUrl, truncate } from './redact.ts';
import { objectAt, plainMembers, textAt, type UntrustedObject } from './values.ts';

const MIME_CHARS_MAX = 200;
const ERROR_CHARS_MAX = 500;

type ParamsFilter = (params: UntrustedObject) => JsonObject;

const RESPONSE_FIELDS = [
  'status',
  'statusText',
  'charset',
  'connectionReused',
  'connectionId',
  'remoteIPAddress',
  'remotePort',
  'fromDiskCache',
  'fromServiceWorker',
  'fromPrefetchCache',
  'encodedDataLength',
  'responseTime',
  'protocol',
  'securityState',
] as const;
const REQUEST_FIELDS = ['method', 'hasPostData', 'initialPriority', 'referrerPolicy', 'isLinkPreload', 'isSameSite'];

const PARAMS_FILTERS: Readonly<Record<string, ParamsFilter>> = {
  'Network.requestWillBeSent': params => ({
    ...plainMembers(params, ['timestamp', 'wallTime', 'redirectHasExtraInfo', 'type', 'hasUserGesture']),
    ...addressField(params, 'documentURL'),
    request: requestFields(objectAt(params, 'request')),
    ...(objectAt(params, 'redirectResponse')
      ? { redirectResponse: responseFields(objectAt(params, 'redirectResponse')) }
      : {}),
    ...initiatorField(params),
  }),
  'Network.requestWillBeSentExtraInfo': headersOnly,
  'Network.responseReceived': params => ({
    ...plainMembers(params, ['timestamp', 'type', 'hasExtraInfo']),
    response: responseFields(objectAt(params, 'response')),
  }),
  'Network.responseReceivedExtraInfo': params => ({ ...plainMembers(params, ['statusCode']), ...headersOnly(params) }),
  'Network.requestServedFromCache': () => ({}),
  'Network.loadingFinished': params => plainMembers(params, ['timestamp', 'encodedDataLength', 'dataLength']),
  'Network.loadingFailed': params => ({
    ...plainMembers(params, ['timestamp', 'type', 'canceled', 'blockedReason']),
    ...plainMembers(objectAt(params, 'corsErrorStatus'), ['corsError']),
    errorText: truncate(textAt(params, 'errorText') ?? '', ERROR_CHARS_MAX),
  }),
  'Network.webSocketCreated': params => ({ ...addressField(params, 'url'), ...initiatorField(params) }),
  'Network.webSocketWillSendHandshakeRequest': params => ({
    ...plainMembers(params, ['timestamp', 'wallTime']),
    request: { headers: redactHeaders(objectAt(objectAt(params, 'request'), 'headers') ?? {}) },
  }),
  'Network.webSocketHandshakeResponseReceived': params => ({
    ...plainMembers(params, ['timestamp']),
    response: {
      ...plainMembers(objectAt(params, 'response'), ['status', 'statusText']),
      headers: redactHeaders(objectAt(objectAt(params, 'response'), 'headers') ?? {}),
    },
  }),
  'Network.webSocketFrameError': params => ({
    ...plainMembers(params, ['timestamp']),
    errorMessage: truncate(textAt(params, 'errorMessage') ?? '', ERROR_CHARS_MAX),
  }),
  'Network.webSocketClosed': params => plainMembers(params, ['timestamp']),
};

/**
 * Returns the logged fields of an event. Undefined for events that are not logged, such as the frequent
 * `Network.dataReceived`.
 */
export function networkParams(method: string, params: UntrustedObject): JsonObject | undefined {
  const paramsFilter = PARAMS_FILTERS[method];
  if (!paramsFilter) return undefined;
  return { ...plainMembers(params, ['requestId']), ...paramsFilter(params) };
}

function headersOnly(params: UntrustedObject): JsonObject {
  return { headers: redactHeaders(objectAt(params, 'headers') ?? {}) };
}

function requestFields(requestParams: UntrustedObject | undefined): JsonObject {
  const fragment = textAt(requestParams, 'urlFragment');
  return {
    url: redactUrl(textAt(requestParams, 'url') ?? ''),
    ...(fragment === undefined ? {} : { urlFragment: redactUrl(fragment) }),
    ...plainMembers(requestParams, REQUEST_FIELDS),
    headers: redactHeaders(objectAt(requestParams, 'headers') ?? {}),
  };
}

function responseFields(responseParams: UntrustedObject | undefined): JsonObject {
  const timing = objectAt(responseParams, 'timing');
  return {
    url: redactUrl(textAt(responseParams, 'url') ?? ''),
    ...plainMembers(responseParams, RESPONSE_FIELDS),
    mimeType: truncate(textAt(responseParams, 'mimeType') ?? '', MIME_CHARS_MAX),
    headers: redactHeaders(objectAt(responseParams, 'headers') ?? {}),
    ...(timing ? { timing: plainMembers(timing, Object.keys(timing).slice(0, 40)) } : {}),
  };
}

/** Returns the URL of the initiating script, without the rest of the stack. */
function initiatorField(params: UntrustedObject): JsonObject {
  const initiatorParams = objectAt(params, 'initiator');
  if (!initiatorParams) return {};
  const frames = objectAt(initiatorParams, 'stack')?.callFrames;
  const frame = Array.isArray(frames) && isObject(frames[0]) ? frames[0] : undefined;
  return {
    initiator: {
      ...plainMembers(initiatorParams, ['type', 'lineNumber']),
      ...addressField(initiatorParams, 'url'),
      ...(frame ? { ...addressField(frame, 'url'), ...plainMembers(frame, ['lineNumber', 'functionName']) } : {}),
    },
  };
}

function addressField(params: UntrustedObject, name: string): JsonObject {
  const url = textAt(params, name);
  return url === undefined ? {} : { [name]: redactUrl(url) };
}
