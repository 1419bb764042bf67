// Validates values against JSON Schemas that callers supply, in a worker thread.
import { VALIDATE } from '../engines/schemas/jobs.ts';
import type { SchemaIssue } from '../engines/schemas/validate-job.ts';
import type { Workers } from '../kit/worker-pool.ts';

export type Validate = (
  value: unknown,
  schemas: readonly object[],
  jobOwner: string,
) => Promise<readonly (readonly SchemaIssue[])[]>;

export const validateIn =
  (workers: Workers): Validate =>
  async (value, schemas, jobOwner) => {
    const result = await workers.run(VALIDATE, { value, schemas }, { owner: jobOwner });
    if ('unusable' in result) throw new Error(`a schema cannot be used: ${result.unusable}`);
    return result.issues;
  };
