// The retention of versions of a context: the maximum number of earlier versions, and their expiry time.
import { EARLIER_VERSIONS_MAX, EARLIER_VERSIONS_RETENTION_DAYS } from '../../../contract/contexts.ts';
import type { KeepVersionRequest } from '../../engines/store/rows/contexts.ts';
import { addMs } from '../../kit/clock.ts';

const DAY_MS = 24 * 3_600_000;

export const retentionFields = (now: Date): Pick<KeepVersionRequest, 'now' | 'earlierVersions'> => ({
  now,
  earlierVersions: { max: EARLIER_VERSIONS_MAX, until: addMs(now, EARLIER_VERSIONS_RETENTION_DAYS * DAY_MS) },
});
