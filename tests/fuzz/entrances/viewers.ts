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

const BURST = 15;
const READ_MS = 10_000;

const messages = (schema: TSchema): TSchema[] => {
  const { anyOf }: { anyOf?: TSchema[] } = schema;
  return anyOf ? anyOf.flatMap(messages) : [schema];
};
const MESSAGES = messages(ViewerMessage);

export async function attackFromViewers(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  await withSession(world, async session => {
    const { body } = await world.server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
    for (let n = 0; n < count; n += BURST) {
      const viewer = await LiveViewer.open(body.debuggerUrl).catch(() => undefined);
      if (!viewer) return;
      const isTold = () => viewer.page !== '' || viewer.closeInfo;
      // An earlier message may have closed the last page.
      await eventually('the viewer to be told of a page', isTold, Boolean, READ_MS).catch(() => {});
      viewer.say({ type: 'take' });
      const isAsked = () =>
        viewer.closeInfo || viewer.messages.some(({ type }) => type === 'refused') || viewer.fence > 0;
      await eventually('control', isAsked, Boolean, READ_MS).catch(() => {});
      for (let said = 0; said < BURST && !viewer.closeInfo; said++) {
        const message = messageOf(viewer, hostile);
        world.notes.note(String(message));
        viewer.sendRaw(message);
      }
      if (!viewer.closeInfo) await viewer.close();
    }
  });
}

function messageOf(viewer: LiveViewer, hostile: HostileValues): string | Buffer {
  const { properties = {} }: { properties?: Record<string, TSchema> } = hostile.pick(MESSAGES) ?? {};
  const names = Object.keys(properties);
  const chosen = hostile.pick(names);
  const common: Readonly<Record<string, unknown>> = { fence: viewer.fence, page: viewer.page };
  const message = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      name === chosen && !hostile.chance(3) ? hostile.value() : (common[name] ?? plausibleValueOf(schema, hostile)),
    ]),
  );
  const whole = hostile.json(hostile.chance(20) ? hostile.value() : message);
  return hostile.chance(10) ? hostile.broken(whole) : whole;
}
