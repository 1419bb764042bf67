// The link to DevTools for the watched page. It is shown only to viewers whose live view URL was created for an agent key,
// and opens a new tab that has no reference to this one.
import { parts } from './parts.ts';

export function linkDevtools(page: string, isAllowed: boolean): void {
  parts.devtools.hidden = !isAllowed || page === '';
  const address = new URL(`${location.pathname.replace(/\/$/, '')}/devtools`, location.href);
  address.searchParams.set('token', new URLSearchParams(location.search).get('token') ?? '');
  address.searchParams.set('page', page);
  parts.devtools.href = address.href;
}
