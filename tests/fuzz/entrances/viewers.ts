// A hostile viewer of the live view: every message that a viewer may send, each of its fields in turn, and invalid
// messages, with and without control.
import type { TSchema } from 'typebox';
import type { DebugUrls } from '../../../contract/live.ts';
import { ViewerMessage } from '../../../contract/live-messages.ts';
import { LiveViewer } from '../../harness/live-viewer.ts';
import { eventually } from '../../harness/until.ts';
import type { HostileValues } from '../hostile.ts';
import { plausibleValueOf } from '../schemas.ts';
import { type Fixture, withSession } from '../world.ts';

const BURST_SIZE = 15;
const READ_TIMEOUT_MS = 10_000;

const messageSchemasOf = (schema: TSchema): TSchema[] => {
  const { anyOf }: { anyOf?: TSchema[] } = schema;
  return anyOf ? anyOf.flatMap(messageSchemasOf) : [schema];
};
const MESSAGE_SCHEMAS = messageSchemasOf(ViewerMessage);

export async function attackFromViewers(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  await withSession(world, async session => {
    const { body } = await world.server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
    for (let n = 0; n < count; n += BURST_SIZE) {
      const viewer = await LiveViewer.open(body.debuggerUrl).catch(() => undefined);
      if (!viewer) return;
      const hasPage = () => viewer.page !== '' || viewer.closeInfo;
      // An earlier message may have closed the last page.
      await eventually('the viewer to be told of a page', hasPage, Boolean, READ_TIMEOUT_MS).catch(() => {});
      viewer.send({ type: 'take' });
      const isTakeAnswered = () =>
        viewer.closeInfo || viewer.messages.some(({ type }) => type === 'refused') || viewer.fence > 0;
      await eventually('control', isTakeAnswered, Boolean, READ_TIMEOUT_MS).catch(() => {});
      for (let sentCount = 0; sentCount < BURST_SIZE && !viewer.closeInfo; sentCount++) {
        const message = hostileMessage(viewer, hostile);
        world.notes.note(String(message));
        viewer.sendRaw(message);
      }
      if (!viewer.closeInfo) await viewer.close();
    }
  });
}

function hostileMessage(viewer: LiveViewer, hostile: HostileValues): string | Buffer {
  const { properties = {} }: { properties?: Record<string, TSchema> } = hostile.pick(MESSAGE_SCHEMAS) ?? {};
  const names = Object.keys(properties);
  const hostileName = hostile.pick(names);
  const commonFields: Readonly<Record<string, unknown>> = { fence: viewer.fence, page: viewer.page };
  const message = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      name === hostileName && !hostile.chance(3)
        ? hostile.value()
        : (commonFields[name] ?? plausibleValueOf(schema, hostile)),
    ]),
  );
  const wholeMessage = hostile.json(hostile.chance(20) ? hostile.value() : message);
  return hostile.chance(10) ? hostile.brokenMessage(wholeMessage) : wholeMessage;
}
