// `If-Match`: which version a change was made from.
import { preconditionFailed, preconditionRequired } from '../faults.ts';

/** The revision in an `If-Match` header that says `"3"`. */
export function revisionFrom(ifMatch: string | undefined): number {
  if (ifMatch === undefined || ifMatch.trim() === '') throw preconditionRequired();
  const [, digits] = /^"(\d{1,9})"$/.exec(ifMatch.trim()) ?? [];
  if (digits === undefined) throw preconditionFailed();
  return Number(digits);
}

export const etagOf = ({ revision }: { readonly revision: number }): string => `"${revision}"`;
