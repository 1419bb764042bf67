import assert from 'node:assert/strict';
import { test } from 'node:test';
import { channelOf, isTargetEvent, parseEvent, responseId, withoutChannel, withoutProxyHeader } from './messages.ts';

const CHANNEL = '0123456789ABCDEF0123456789ABCDEF';
const bytes = (text: string): Buffer => Buffer.from(text);

test('reads the channel only from the last property', () => {
  assert.equal(channelOf(bytes(`{"id":1,"result":{},"sessionId":"${CHANNEL}"}`)), CHANNEL);
  assert.equal(channelOf(bytes(`{"id":1,"result":{"text":"\\"sessionId\\":\\"${CHANNEL}\\""}}`)), undefined);
  assert.equal(channelOf(bytes(`{"id":1,"result":{"sessionId":"${CHANNEL}"}}`)), undefined);
  assert.equal(channelOf(bytes('{"id":1,"result":{}}')), undefined);
  assert.equal(channelOf(bytes('')), undefined);
  assert.equal(channelOf(bytes(`"sessionId":"${CHANNEL}"}`)), undefined);
});

test('removes the channel and leaves valid JSON', () => {
  const message = bytes(`{"id":1,"result":{"a":"ä"},"sessionId":"${CHANNEL}"}`);
  assert.equal(String(withoutChannel(message)), '{"id":1,"result":{"a":"ä"}}');
});

test('removes the channel without changing other messages in the same buffer', () => {
  const one = `{"id":1,"result":{},"sessionId":"${CHANNEL}"}`;
  const read = bytes(`${one}\0${one}\0`);
  withoutChannel(read.subarray(0, one.length));
  assert.equal(String(read.subarray(one.length + 1, -1)), one);
});

test('renames the Proxy-Connection header of a sent request and changes nothing else', () => {
  const sent = (headers: string): string =>
    `{"method":"Network.requestWillBeSentExtraInfo","params":{"headers":{${headers}}},"sessionId":"${CHANNEL}"}`;
  const renameHeader = (text: string): string => String(withoutProxyHeader(bytes(text)));
  assert.equal(
    renameHeader(sent('"Host":"ä","Proxy-Connection":"keep-alive","X":"y"')),
    sent('"Host":"ä","Connection":"keep-alive","X":"y"'),
  );
  const quotedMessage = sent('"X":"\\"Proxy-Connection\\":\\"keep-alive\\""');
  for (const text of [
    quotedMessage,
    sent('"Host":"a"'),
    '{"id":1,"result":{"Proxy-Connection":"keep-alive"}}',
    '{"method":"N',
  ])
    assert.equal(renameHeader(text), text);
});

test('reads the id of a response, and returns undefined for an event', () => {
  assert.equal(responseId(bytes('{"id":1234567,"result":{}}')), 1234567);
  assert.equal(responseId(bytes('{"id":-5,"error":{}}')), -5);
  assert.equal(responseId(bytes('{"method":"A.b","params":{"id":1}}')), undefined);
  assert.equal(responseId(bytes('{"i')), undefined);
});

test('isTargetEvent returns true only for events of the Target domain', () => {
  assert.equal(isTargetEvent(bytes('{"method":"Target.targetCreated","params":{}}')), true);
  assert.equal(isTargetEvent(bytes('{"method":"Targets.x"}')), false);
  assert.equal(isTargetEvent(bytes('{"method":"Tar')), false);
  assert.equal(isTargetEvent(bytes('{"id":1,"result":{"method":"Target."}}')), false);
});

test('decodes the image of a screencast frame of any length, and leaves invalid base64 unchanged', () => {
  for (const length of [1, 2, 3, 24_575, 24_576, 24_577, 100_000]) {
    const picture = Buffer.from(Array.from({ length }, (_, index) => (index * 7 + length) % 256));
    const params = { data: picture.toString('base64'), metadata: { timestamp: 1.5 }, sessionId: 4 };
    const parsedEvent = parseEvent(
      bytes(JSON.stringify({ method: 'Page.screencastFrame', params, sessionId: CHANNEL })),
    );
    assert.ok(parsedEvent.frameBytes?.equals(picture), `${length}`);
    assert.deepEqual(
      [parsedEvent.method, parsedEvent.params, parsedEvent.sessionId],
      ['Page.screencastFrame', { ...params, data: '' }, CHANNEL],
    );
  }
  for (const data of ['', 'abc', 'a\\b"c', '!!!!']) {
    const message = { method: 'Page.screencastFrame', params: { data, sessionId: 1 } };
    assert.deepEqual(parseEvent(bytes(JSON.stringify(message))), message);
  }
  assert.deepEqual(parseEvent(bytes('{"method":"A.b","params":{}}')), { method: 'A.b', params: {} });
});
