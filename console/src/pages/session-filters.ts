// What the list of sessions is narrowed to, as it stands in the address, and in the API's own query language.
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
  /** As it was typed: `run=r-1842`, or the API's own words. */
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

/** `run=r-1842, team.name=blue` as a query; what is written as a query stays one. */
export function metadataQuery(text: string): string | undefined {
  const wish = text.trim();
  if (wish === '') return undefined;
  if (wish.startsWith('user_metadata[')) return wish;
  const terms = wish.split(/\s*,\s*/).filter(term => term !== '');
  return terms.map(term).join(' AND ');
}

function term(text: string): string {
  const at = text.indexOf('=');
  // Without a value there is nothing to ask for; the API then says how a query is written.
  if (at === -1) return text;
  const path = text.slice(0, at).trim().split('.');
  return `user_metadata${path.map(name => `['${quoted(name)}']`).join('')}:'${quoted(text.slice(at + 1).trim())}'`;
}

const quoted = (text: string): string => text.replace(/[\\']/g, found => `\\${found}`);
