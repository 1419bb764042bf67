// Parses the `If-Match` header, which contains the revision on which a change is based.
import { malformedRevision, preconditionRequired } from '../faults.ts';

/** Returns the revision in an `If-Match` header such as `"3"`, or `current` for `*`. */
export function revisionFrom(ifMatch: string | undefined, current: number): number {
  if (ifMatch === undefined || ifMatch.trim() === '') throw preconditionRequired();
  if (ifMatch.trim() === '*') return current;
  const [, digits] = /^"(\d{1,9})"$/.exec(ifMatch.trim()) ?? [];
  if (digits === undefined) throw malformedRevision(current);
  return Number(digits);
}
