// Sends hostile values through every entrance for a few seconds with a fixed seed, and repeats the batches that found a
// bug.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUG_BATCHES } from './found.ts';
import { type BatchPlan, Fuzz } from './fuzz.ts';

const SEED = 20_261_122;
const BATCHES: readonly BatchPlan[] = [
  { entrance: 'pages', seed: SEED, count: 20 },
  { entrance: 'clients', seed: SEED, count: 120 },
  { entrance: 'browser', seed: SEED, count: 60 },
  { entrance: 'viewers', seed: SEED, count: 30 },
  { entrance: 'callers', seed: SEED, count: 100 },
  { entrance: 'adoption', seed: SEED, count: 20 },
];

const fuzz = await Fuzz.open({ repeats: 4_000, recordSession: false });

for (const plan of BATCHES)
  test(`the server withstands hostile values (entrance: ${plan.entrance}), and no attacked session remains`, async () => {
    await fuzz.runBatch(plan);
    assert.ok((fuzz.report.sentCounts[plan.entrance] ?? 0) > 0, 'no hostile value was sent');
  });

for (const { what, ...plan } of BUG_BATCHES)
  test(`the server withstands a case that fuzzing found in ${plan.entrance}: ${what}`, () => fuzz.runBatch(plan));
