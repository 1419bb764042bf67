// How long inputs and outputs of configured operations are kept. Pure.
import { RETENTION_DAYS_DEFAULT } from '../../../contract/configured-operations.ts';
import type { PreparedCall } from '../invocations/prepared.ts';
import type { OperationDefinition } from './definition.ts';

type Retention = OperationDefinition['retention'];

/**
 * How long the output of a call can be read after the call has ended, if the operation keeps only the digest of the
 * output.
 */
const UNRETAINED_OUTPUT_LIFETIME_MS = 600_000;
const DAY_MS = 24 * 3_600_000;

const retentionMs = ({ days = RETENTION_DAYS_DEFAULT }: Retention): number => days * DAY_MS;

export const inputRetention = (retention: Retention): Pick<PreparedCall, 'inputKeptMs'> =>
  retention.input === 'full' ? { inputKeptMs: retentionMs(retention) } : {};

export const outputRetention = (retention: Retention): { readonly keptMs: number; readonly isNotKept: boolean } => ({
  keptMs: retention.output === 'full' ? retentionMs(retention) : UNRETAINED_OUTPUT_LIFETIME_MS,
  isNotKept: retention.output === 'none',
});
