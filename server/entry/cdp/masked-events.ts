// Filters the events that clients receive in a masked hand-off. Clients receive nothing that a person types, and
// nothing that pages show or report during the hand-off.
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';

/** The method is the first member of every event. */
const EVENT_HEAD = /^\{"method":"([A-Za-z]+)\.([A-Za-z]+)"/;
const HEAD_BYTES = 128;
/** A longer event is not sent if a part of it would have to be removed. */
export const REDACTED_EVENT_BYTES_MAX = 4 * 1024 ** 2;

/** Domains whose events are sent. Events of all other domains may contain page content. */
const SHOWN_DOMAINS: ReadonlySet<string> = new Set([
  ...['Target', 'Page', 'Fetch', 'Runtime', 'Inspector', 'Browser', 'Security', 'Emulation', 'Berth'],
]);
/**
 * Events of the Network domain that are sent. Most events of this domain report transferred data. The events listed
 * here are enough to follow requests.
 */
const SHOWN_EVENTS: ReadonlySet<string> = new Set([
  ...['Network.requestWillBeSent', 'Network.requestServedFromCache', 'Network.responseReceived'],
  ...['Network.loadingFinished', 'Network.loadingFailed', 'Network.webSocketCreated', 'Network.webSocketClosed'],
]);
/** Events of `SHOWN_DOMAINS` that are not sent. */
const HIDDEN_EVENTS: ReadonlySet<string> = new Set([
  ...['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Runtime.bindingCalled', 'Runtime.inspectRequested'],
  'Page.screencastFrame',
]);
/** Events from which a part is removed, each with the function that removes it from the parameters. */
const PARAM_REDACTORS: Readonly<Record<string, (params: JsonObject) => JsonObject>> = {
  'Network.requestWillBeSent': withoutContent,
  'Network.responseReceived': withoutContent,
  'Fetch.requestPaused': withoutContent,
  'Fetch.authRequired': withoutContent,
  'Target.targetCreated': withoutTitle,
  'Target.targetInfoChanged': withoutTitle,
  'Target.attachedToTarget': withoutTitle,
};
/**
 * Members of a request or response that may contain typed text: the body, and headers, for example a header with a
 * password.
 */
const CONTENT_MEMBERS = [
  'postData',
  'postDataEntries',
  'hasPostData',
  'headersText',
  'requestHeaders',
  'requestHeadersText',
];

/** Returns the event as the client receives it. Undefined if the client does not receive it. */
export function shownEvent(event: Buffer): Buffer | undefined {
  const [, domain = '', name = ''] = EVENT_HEAD.exec(event.toString('latin1', 0, HEAD_BYTES)) ?? [];
  const method = `${domain}.${name}`;
  if ((!SHOWN_DOMAINS.has(domain) && !SHOWN_EVENTS.has(method)) || HIDDEN_EVENTS.has(method)) return undefined;
  const redactParams = PARAM_REDACTORS[method];
  if (!redactParams) return event;
  if (event.length > REDACTED_EVENT_BYTES_MAX) return undefined;
  const message = parseJson(event);
  if (!isObject(message) || !isObject(message.params)) return undefined;
  return Buffer.from(JSON.stringify({ ...message, params: redactParams(message.params) }));
}

function withoutContent(params: JsonObject): JsonObject {
  const { responseHeaders, ...rest } = params;
  const clearedParts = Object.fromEntries(
    ['request', 'response', 'redirectResponse'].flatMap(name => {
      const part = rest[name];
      if (!isObject(part)) return [];
      const keptMembers = Object.entries(part).filter(([member]) => !CONTENT_MEMBERS.includes(member));
      return [[name, { ...Object.fromEntries(keptMembers), headers: {} }]];
    }),
  );
  return { ...rest, ...clearedParts, ...(responseHeaders === undefined ? {} : { responseHeaders: [] }) };
}

/** Removes titles, because pages can write anything into their title. */
export function withoutTitle(params: JsonObject): JsonObject {
  const { targetInfo, targetInfos } = params;
  return {
    ...params,
    ...(isObject(targetInfo) ? { targetInfo: { ...targetInfo, title: '' } } : {}),
    ...(Array.isArray(targetInfos)
      ? { targetInfos: targetInfos.map(info => (isObject(info) ? { ...info, title: '' } : info)) }
      : {}),
  };
}
