// A hostile browser: the messages that it writes to the pipe are changed, and unexpected events and responses are
// inserted on channels that appeared in earlier messages.
import { CdpClient, parseMessage } from '../../harness/cdp.ts';
import { withTimeLimit } from '../../harness/until.ts';
import type { HostileValues } from '../hostile.ts';
import { EVENTS, hostileParams } from '../protocol.ts';
import { type Fixture, releaseAll } from '../world.ts';

const RESPONSE_TIMEOUT_MS = 3_000;
const CHANNELS_MAX = 50;

export async function attackFromBrowser(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  const channels = new Set<string>();
  let changeOneIn = 0;
  const changeMessage = (message: Buffer): readonly Buffer[] => {
    const channel = /"sessionId":"([0-9A-F]{32})"/.exec(message.toString('latin1'))?.[1];
    if (channel && channels.size < CHANNELS_MAX) channels.add(channel);
    if (changeOneIn === 0 || !hostile.chance(changeOneIn)) return [message];
    const replacement = corruptMessage(message, hostile);
    world.notes.note(String(replacement));
    return hostile.chance(3) ? [message, replacement] : [replacement];
  };
  const options = { keepAlive: true, ...world.sessionOptions };
  // In some runs messages are changed from the first one on, and the session may then fail to start.
  if (hostile.chance(4)) changeOneIn = 6;
  const { server } = world;
  const create = () =>
    server.api<{ id: string; connectUrl?: string }>('POST', '/v1/browsers/sessions', { body: options });
  const { createResult, pipe } = await world.pipeInterceptor.interceptSession(server.dataDir, changeMessage, create);
  try {
    const { connectUrl } = createResult.body;
    if (!connectUrl) return;
    const client = await CdpClient.connect(connectUrl, {}, parseMessage).catch(() => undefined);
    const page =
      client && (await withTimeLimit('the page', client.attachToPage(), RESPONSE_TIMEOUT_MS).catch(() => undefined));
    changeOneIn = 8;
    for (let n = 0; n < count; n++) {
      const message = Buffer.from(hostileEvent([...channels], hostile));
      world.notes.note(String(message));
      pipe.sendAsBrowser(hostile.chance(12) ? withoutNul(hostile.brokenMessage(String(message))) : message);
      if (n % 10 !== 0 || !client?.isOpen) continue;
      const url = `${world.pages.a}/${hostile.pick(['', 'next', 'popups', 'socket', 'download'])}`;
      await withTimeLimit('a page', client.ask('Page.navigate', { url }, page), RESPONSE_TIMEOUT_MS).catch(() => {});
    }
    client?.cut();
    await releaseAll(world);
  } finally {
    pipe.close();
  }
}

/** Returns a message from the browser with one value changed, or an invalid message. */
function corruptMessage(message: Buffer, hostile: HostileValues): Buffer {
  const text = message.toString();
  if (hostile.chance(6)) return withoutNul(hostile.brokenMessage(text));
  const value: unknown = JSON.parse(text);
  return Buffer.from(hostile.json(changeValue(value, hostile)));
}

function changeValue(value: unknown, hostile: HostileValues): unknown {
  if (typeof value !== 'object' || value === null || hostile.chance(6)) return hostile.value();
  const names = Object.keys(value);
  const name = hostile.pick(names);
  if (name === undefined) return hostile.value();
  if (Array.isArray(value)) return value.map((one, at) => (String(at) === name ? changeValue(one, hostile) : one));
  return Object.fromEntries(
    Object.entries(value).map(([known, one]) => [known, known === name ? changeValue(one, hostile) : one]),
  );
}

function hostileEvent(channels: readonly string[], hostile: HostileValues): string {
  const eventMethod = hostile.pick(EVENTS);
  const channel = hostile.chance(6) ? hostile.value() : hostile.pick(channels);
  const content = hostile.chance(5)
    ? { id: hostile.chance(2) ? hostile.int(500) : hostile.value(), result: hostile.value() }
    : { method: eventMethod?.name, params: eventMethod ? hostileParams(eventMethod, hostile.int(20), hostile) : {} };
  return hostile.json({ ...content, ...(channel === undefined ? {} : { sessionId: channel }) });
}

/** Removes NUL bytes, because a NUL would end the message. */
const withoutNul = (bytes: Buffer): Buffer => Buffer.from(bytes.filter(byte => byte !== 0));
