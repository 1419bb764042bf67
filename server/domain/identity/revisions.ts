// `If-Match`: which version a change was made from.
import { preconditionFailed, preconditionRequired } from '../faults.ts';

/** The revision that a change is made from: one in an `If-Match` header that says `"3"`, the current one where it says `*`. */
export function revisionFrom(ifMatch: string | undefined, current: number): number {
  if (ifMatch === undefined || ifMatch.trim() === '') throw preconditionRequired();
  if (ifMatch.trim() === '*') return current;
  const [, digits] = /^"(\d{1,9})"$/.exec(ifMatch.trim()) ?? [];
  if (digits === undefined) throw preconditionFailed(current);
  return Number(digits);
}

export const etagOf = ({ revision }: { readonly revision: number }): string => `"${revision}"`;
