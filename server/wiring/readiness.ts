// The capacity of the machine, and the checks of /readyz: the database, the slots, the disk, and whether browsers
// start.
import type { WarmPool } from '../domain/sessions/warm-pool.ts';
import { describeCapacity, thisMachine } from '../engines/slots/capacity.ts';
import type { DiskRoom } from '../engines/slots/slots.ts';
import type { ReadinessResult } from '../entry/http/operator.ts';
import type { Foundation } from './foundation.ts';

const MIB = 1024 ** 2;

export async function readiness({ store, slots }: Foundation, pool: WarmPool): Promise<ReadinessResult> {
  const databaseCheck = await store.ping().then(
    () => ({ name: 'database', ok: true, detail: 'answers' }),
    () => ({ name: 'database', ok: false, detail: 'does not answer' }),
  );
  const slotsCheck = { name: 'slots', ok: true, detail: `isolation: ${slots.form}` };
  const browsersCheck = { name: 'browsers', ...pool.health };
  const disk = diskCheckOf(await slots.readDiskRoom());
  const machine = thisMachine();
  const detail = [...slots.engines.keys()].map(engine => describeCapacity(engine, machine)).join('; ');
  const capacityCheck = { name: 'capacity', ok: true, detail };
  const checks = [databaseCheck, slotsCheck, browsersCheck, disk, capacityCheck];
  return { ok: checks.every(({ ok }) => ok), checks };
}

const diskCheckOf = ({ freeBytes, minFreeBytes: leastBytes, freeFiles, minFreeFiles: leastFiles }: DiskRoom) => ({
  name: 'disk',
  ok: freeBytes >= leastBytes && freeFiles >= leastFiles,
  detail:
    freeFiles < leastFiles
      ? `${freeFiles} inodes free; a session needs ${leastFiles}`
      : `${Math.round(freeBytes / MIB)} MiB free; a session needs ${Math.round(leastBytes / MIB)}`,
});
