// Converts a row of the sessions table into a SessionRow.
import type { Selectable } from 'kysely';
import type { SessionEnd, SessionRow } from '../rows/sessions.ts';
import type { SessionsTable } from '../schema.ts';
import { withoutNulls } from './without-nulls.ts';

export function sessionRow(row: Selectable<SessionsTable>): SessionRow {
  const { endStatus, endReason, endDetail, endDecidedAt: _, dueAt: __, createDigest: ___, answer: ____, ...more } = row;
  const { filesDueAt: _____, forgetDueAt: ______, ...rest } = more;
  const end = endStatus && endReason !== null ? { end: sessionEnd(endStatus, endReason, endDetail) } : {};
  return { ...withoutNulls(rest), ...end };
}

const sessionEnd = (status: SessionEnd['status'], reason: string, detail: string | null): SessionEnd => ({
  status,
  reason,
  ...(detail === null ? {} : { detail }),
});
