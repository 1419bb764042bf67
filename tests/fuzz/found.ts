// Batches that have found something once. Each is run in every test run.
import type { BatchPlan } from './fuzz.ts';

export const FOUND: readonly (BatchPlan & { readonly what: string })[] = [];
