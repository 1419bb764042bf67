// What a client gets of the browser's events in a masked hand-off: nothing of what a person types, and nothing of what pages
// show or say meanwhile.
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';

/** The method is the first member of every event. */
const HEAD = /^\{"method":"([A-Za-z]+)\.([A-Za-z]+)"/;
const HEAD_BYTES = 128;
/** A longer event whose request would have to be cleared is not sent. */
const CLEARED_BYTES_MAX = 4 * 1024 ** 2;

/** Events of these domains mirror the content of pages. */
const HIDDEN_DOMAINS: ReadonlySet<string> = new Set([
  ...['Accessibility', 'Animation', 'Audits', 'Autofill', 'Console', 'CSS', 'Debugger', 'DOM', 'DOMStorage'],
  ...[
    'HeapProfiler',
    'IndexedDB',
    'Input',
    'LayerTree',
    'Log',
    'Overlay',
    'Profiler',
    'Storage',
    'Tracing',
    'WebAuthn',
  ],
]);
const HIDDEN: ReadonlySet<string> = new Set([
  ...['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Runtime.bindingCalled', 'Runtime.inspectRequested'],
  ...['Page.screencastFrame', 'Page.javascriptDialogClosed', 'Network.requestWillBeSentExtraInfo'],
  ...['Network.webSocketFrameSent', 'Network.webSocketFrameReceived', 'Network.eventSourceMessageReceived'],
  ...['Network.dataReceived', 'Network.directTCPSocketChunkSent', 'Network.webTransportCreated'],
]);
/** The parts of a request that carry what was typed. */
const BODY = ['postData', 'postDataEntries', 'hasPostData'];

/** Undefined: the client does not get the event. */
export function shownEvent(event: Buffer): Buffer | undefined {
  const [, domain = '', name = ''] = HEAD.exec(event.toString('latin1', 0, HEAD_BYTES)) ?? [];
  const method = `${domain}.${name}`;
  if (HIDDEN_DOMAINS.has(domain) || HIDDEN.has(method)) return undefined;
  return method === 'Network.requestWillBeSent' || method === 'Fetch.requestPaused' ? withoutBody(event) : event;
}

function withoutBody(event: Buffer): Buffer | undefined {
  if (event.length > CLEARED_BYTES_MAX) return undefined;
  const message = parseJson(event);
  if (!isObject(message) || !isObject(message.params)) return undefined;
  const { request } = message.params;
  const cleared: JsonObject = isObject(request)
    ? { ...Object.fromEntries(Object.entries(request).filter(([name]) => !BODY.includes(name))) }
    : {};
  return Buffer.from(JSON.stringify({ ...message, params: { ...message.params, request: cleared } }));
}
