// A hostile CDP client: every command that the policy inspects and many others, each parameter in turn, and invalid
// messages. Connects through the connect URL, the DevTools socket of a page, and the live view socket.
import type { DebugUrls } from '../../../contract/live.ts';
import { clientPolicy } from '../../../server/entry/cdp/policy.ts';
import { CdpClient } from '../../harness/cdp.ts';
import type { CreatedSession } from '../../harness/server.ts';
import { withTimeLimit } from '../../harness/until.ts';
import type { HostileValues } from '../hostile.ts';
import { COMMANDS, hostileParams, type Method } from '../protocol.ts';
import { type Fixture, withSession } from '../world.ts';

/** Number of messages that are sent together. A response to a later command shows that they were read. */
const BURST_SIZE = 20;
const RESPONSE_TIMEOUT_MS = 15_000;

/** The commands that the policy inspects. Nothing else of this policy is used. */
const WATCHED_METHODS: ReadonlySet<string> = clientPolicy({
  browser: {} as never,
  keepAlive: true,
  onCloseRequest: () => {},
  lease: undefined,
}).watchedMethods;
const INSPECTED_COMMANDS = COMMANDS.filter(({ name }) => WATCHED_METHODS.has(name));
/** Each inspected command with each of its parameters. */
const INSPECTED_PARAMETERS = INSPECTED_COMMANDS.flatMap(method =>
  Array.from({ length: Math.max(1, method.parameters.length) }, (_, at) => ({ method, at })),
);

export async function attackFromClients(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  await withSession(world, async session => {
    const socketUrls = await requestSocketUrls(world, session);
    const startIndex = hostile.int(INSPECTED_PARAMETERS.length);
    for (let n = 0; n < count; n += BURST_SIZE) {
      const socketUrl = hostile.pick(socketUrls) ?? session.connectUrl;
      // An earlier hostile message may have ended this session, so a refused connection is not a failure.
      const client = await CdpClient.connect(socketUrl).catch(() => undefined);
      if (!client) return;
      const page = socketUrl === session.connectUrl ? await attachToPage(client) : undefined;
      for (let sentCount = 0; sentCount < BURST_SIZE && client.isOpen; sentCount++) {
        const inspectedParameter = INSPECTED_PARAMETERS[(startIndex + n + sentCount) % INSPECTED_PARAMETERS.length];
        const message = hostileMessage(inspectedParameter, page, hostile);
        world.notes.note(String(message));
        client.sendRaw(message);
      }
      await withTimeLimit('an answer', client.ask('Browser.getVersion'), RESPONSE_TIMEOUT_MS).catch(() => {});
      client.cut();
    }
  });
}

const attachToPage = (client: CdpClient): Promise<string | undefined> =>
  withTimeLimit('the page', client.attachToPage(), RESPONSE_TIMEOUT_MS).catch(() => undefined);

async function requestSocketUrls({ server }: Fixture, session: CreatedSession): Promise<string[]> {
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
  const devtoolsUrl = body.pages[0]?.devtoolsUrl?.replace(/^http/, 'ws').replace('/devtools?', '/devtools/socket?');
  return [
    session.connectUrl,
    session.connectUrl,
    ...(body.wsUrl ? [body.wsUrl] : []),
    ...(devtoolsUrl ? [devtoolsUrl] : []),
  ];
}

function hostileMessage(
  inspectedParameter: { readonly method: Method; readonly at: number } | undefined,
  page: string | undefined,
  hostile: HostileValues,
): string | Buffer {
  const { method, at } =
    inspectedParameter && hostile.chance(2)
      ? inspectedParameter
      : { method: hostile.pick(COMMANDS), at: hostile.int(20) };
  const channel = hostile.chance(10) ? hostile.value() : page;
  const wholeMessage = hostile.json({
    id: hostile.chance(20) ? hostile.value() : 1000 + hostile.int(1_000_000),
    method: hostile.chance(30) ? hostile.value() : method?.name,
    params: hostile.chance(30) || !method ? hostile.value() : hostileParams(method, at, hostile),
    ...(hostile.chance(3) || channel === undefined ? {} : { sessionId: channel }),
  });
  if (!hostile.chance(8)) return wholeMessage;
  const brokenMessage = hostile.brokenMessage(wholeMessage);
  return hostile.chance(4) ? brokenMessage : brokenMessage.toString('latin1');
}
