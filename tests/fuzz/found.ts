// Batches that found a bug. Each is repeated in every test run.
import type { BatchPlan } from './fuzz.ts';

export const BUG_BATCHES: readonly (BatchPlan & { readonly what: string })[] = [];
