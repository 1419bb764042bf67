// What /readyz looks at: the database, the slots, whether browsers start, and the disk.
import type { WarmPool } from '../domain/sessions/warm-pool.ts';
import type { DiskRoom } from '../engines/slots/slots.ts';
import type { Ready } from '../entry/http/service.ts';
import type { Foundation } from './foundation.ts';

const MIB = 1024 ** 2;

export async function readiness({ store, slots }: Foundation, pool: WarmPool): Promise<Ready> {
  const database = await store.ping().then(
    () => ({ name: 'database', ok: true, detail: 'answers' }),
    () => ({ name: 'database', ok: false, detail: 'does not answer' }),
  );
  const room = { name: 'slots', ok: true, detail: `form ${slots.form}` };
  const browsers = { name: 'browsers', ...pool.health };
  const disk = diskCheck(await slots.diskRoom());
  const checks = [database, room, browsers, disk];
  return { ok: checks.every(({ ok }) => ok), checks };
}

const diskCheck = ({ freeBytes, leastBytes }: DiskRoom) => ({
  name: 'disk',
  ok: freeBytes >= leastBytes,
  detail: `${Math.round(freeBytes / MIB)} MiB free; a session needs ${Math.round(leastBytes / MIB)}`,
});
