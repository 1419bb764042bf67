// Writes the OpenAPI document as YAML in a worker thread: that takes half a second.
import { stringify } from 'yaml';
import { openApiDocument } from '../../../../contract/openapi.ts';
import type { Job } from '../../../kit/worker-pool.ts';

const LIMIT_MS = 60_000;

/** Of this version of the server. */
export const OPENAPI_YAML: Job<string, string> = {
  name: 'write the OpenAPI document',
  module: import.meta.url,
  limitMs: LIMIT_MS,
};

export const work = (version: string): string =>
  stringify(openApiDocument(version), { lineWidth: 120, aliasDuplicateObjects: false });
