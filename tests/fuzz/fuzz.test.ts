// A few seconds of hostile values through every entrance, with a fixed seed, and what has found something once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FOUND } from './found.ts';
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
  test(`hostile values by way of ${plan.entrance} hurt nobody else and leave nothing`, async () => {
    await fuzz.batch(plan);
    assert.ok((fuzz.report.said[plan.entrance] ?? 0) > 0, 'nothing was said');
  });

for (const { what, ...plan } of FOUND)
  test(`what was found by way of ${plan.entrance} stays mended: ${what}`, () => fuzz.batch(plan));
