// Sends hostile values for an hour with a random seed, which is printed. BERTH_FUZZ_MINUTES and BERTH_FUZZ_SEED set the
// duration and the seed.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { ENTRANCES, type EntranceName, Fuzz } from './fuzz.ts';
import { HostileValues } from './hostile.ts';

const MINUTE_MS = 60_000;
/** Warm-up, after which the memory of the server is measured as the reference. */
const WARM_UP_MS = 5 * MINUTE_MS;
const VALUE_COUNTS: Readonly<Record<EntranceName, number>> = {
  pages: 60,
  clients: 400,
  browser: 200,
  viewers: 90,
  callers: 400,
  adoption: 40,
};
const MIB = 1024 ** 2;
/** Allows for the garbage that one batch of large values leaves in memory. */
const GROWTH_BYTES_MAX = 150 * MIB;
/**
 * Every entrance for hostile values except adoption. Adoption replaces the server process, so the memory
 * before and after it cannot be compared.
 */
const ENTRANCE_NAMES = (Object.keys(ENTRANCES) as EntranceName[]).filter(name => name !== 'adoption');

const minutes = Number(process.env.BERTH_FUZZ_MINUTES ?? 60);
const seed = Number(process.env.BERTH_FUZZ_SEED ?? randomInt(2 ** 31));

test(`the server withstands hostile values for ${minutes} minutes with seed ${seed}, and no attacked session remains`, async () => {
  const fuzz = await Fuzz.open({ repeats: 50_000, recordSession: true });
  const seedGenerator = new HostileValues(seed, 1);
  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  const { pid } = fuzz.world.server;
  let warmBytes: number | undefined;
  let batchCount = 0;
  while (elapsedMs() < minutes * MINUTE_MS) {
    const entrance = ENTRANCE_NAMES[batchCount++ % ENTRANCE_NAMES.length] ?? 'pages';
    await fuzz.runBatch({ entrance, seed: seedGenerator.int(2 ** 31), count: VALUE_COUNTS[entrance] });
    if (elapsedMs() > WARM_UP_MS) warmBytes ??= fuzz.memoryBytes;
  }
  const endBytes = fuzz.memoryBytes;
  const report = { seed, minutes, batches: batchCount, pid, pidAtEnd: fuzz.world.server.pid, warmBytes, endBytes };
  console.log(JSON.stringify({ ...report, ...fuzz.report, ...(await fuzz.readTurns()) }, null, 2));
  assert.equal(fuzz.world.server.pid, pid);
  if (warmBytes !== undefined) assert.ok(endBytes - warmBytes < GROWTH_BYTES_MAX, 'memory grows');
  await fuzz.runBatch({ entrance: 'adoption', seed, count: VALUE_COUNTS.adoption });
});
