// Filters of the list of sessions: in the address, and in the query language of the API.
import type { SessionStatus } from '../../../contract/sessions.ts';

export const STATUS_GROUPS = {
  all: { name: 'All', statuses: [] },
  open: { name: 'Running', statuses: ['PENDING', 'RUNNING'] },
  ended: { name: 'Ended', statuses: ['COMPLETED', 'TIMED_OUT'] },
  failed: { name: 'Failed', statuses: ['ERROR'] },
} as const satisfies Readonly<Record<string, { name: string; statuses: readonly SessionStatus[] }>>;

export type StatusGroup = keyof typeof STATUS_GROUPS;

export interface Filters {
  readonly show?: StatusGroup;
  /** As typed: `run=r-1842`, or a query in the language of the API. */
  readonly find?: string;
}

export function readFilters(search: Record<string, unknown>): Filters {
  const show = Object.keys(STATUS_GROUPS).find(group => group === search.show) as StatusGroup | undefined; // a key of it
  return {
    ...(show && show !== 'all' ? { show } : {}),
    ...(typeof search.find === 'string' && search.find !== '' ? { find: search.find } : {}),
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isSessionId = (text: string): boolean => UUID.test(text.trim());

/** Converts `run=r-1842, team.name=blue` to a query. A text in the query language is not changed. */
export function metadataQuery(text: string): string | undefined {
  const query = text.trim();
  if (query === '') return undefined;
  if (query.startsWith('user_metadata[')) return query;
  const terms = query.split(/\s*,\s*/).filter(term => term !== '');
  return terms.map(term).join(' AND ');
}

function term(text: string): string {
  const at = text.indexOf('=');
  // A pair without a value is passed on; the API then explains the query language.
  if (at === -1) return text;
  const path = text.slice(0, at).trim().split('.');
  return `user_metadata${path.map(name => `['${quoted(name)}']`).join('')}:'${quoted(text.slice(at + 1).trim())}'`;
}

const quoted = (text: string): string => text.replace(/[\\']/g, found => `\\${found}`);
