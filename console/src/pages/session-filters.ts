// Reads the filters of the list of sessions from the address of the page, and converts them to a query for the API.
import type { EndReason, SessionStatus } from '../../../contract/sessions.ts';
import { END_REASON_WORDS } from '../ui/end-reasons.ts';

export const STATUS_GROUPS = {
  all: { name: 'All', statuses: [] },
  open: { name: 'Running', statuses: ['PENDING', 'RUNNING'] },
  ended: { name: 'Ended', statuses: ['COMPLETED', 'TIMED_OUT'] },
  failed: { name: 'Failed', statuses: ['ERROR'] },
} as const satisfies Readonly<Record<string, { name: string; statuses: readonly SessionStatus[] }>>;

export type StatusGroup = keyof typeof STATUS_GROUPS;

export interface Filters {
  readonly show?: StatusGroup;
  /** The search text as typed: words, `run=r-1842`, or a query in the query language of the API. */
  readonly find?: string;
  readonly reason?: EndReason;
  /** The agent key that created the session. */
  readonly key?: string;
  readonly since?: Since;
  readonly lasted?: DurationFilter;
}

/** The maximum age of a session, in hours. */
export const SINCE_FILTERS = {
  hour: { name: 'Last hour', hours: 1 },
  day: { name: 'Last 24 hours', hours: 24 },
  week: { name: 'Last 7 days', hours: 168 },
  month: { name: 'Last 30 days', hours: 720 },
} as const;
export type Since = keyof typeof SINCE_FILTERS;

/** How long a session has lasted. */
export const DURATION_FILTERS = {
  seconds: { name: 'Under 10 seconds', query: { atMostSeconds: 10 } },
  minute: { name: 'Over a minute', query: { atLeastSeconds: 60 } },
  minutes: { name: 'Over 10 minutes', query: { atLeastSeconds: 600 } },
  hour: { name: 'Over an hour', query: { atLeastSeconds: 3600 } },
} as const;
export type DurationFilter = keyof typeof DURATION_FILTERS;

export function readFilters(search: Record<string, unknown>): Filters {
  const show = Object.keys(STATUS_GROUPS).find(group => group === search.show) as StatusGroup | undefined;
  return {
    ...(show && show !== 'all' ? { show } : {}),
    ...(typeof search.find === 'string' && search.find !== '' ? { find: search.find } : {}),
    ...optionalMember('reason', keyOf(END_REASON_WORDS, search.reason)),
    ...(typeof search.key === 'string' && isSessionId(search.key) ? { key: search.key } : {}),
    ...optionalMember('since', keyOf(SINCE_FILTERS, search.since)),
    ...optionalMember('lasted', keyOf(DURATION_FILTERS, search.lasted)),
  };
}

const optionalMember = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [N in Name]?: Value } =>
  value === undefined ? {} : ({ [name]: value } as { readonly [N in Name]: Value }); // TypeScript widens computed keys.

function keyOf<Keys extends string>(table: Readonly<Record<Keys, unknown>>, value: unknown): Keys | undefined {
  const names = Object.keys(table) as Keys[]; // Object.keys() returns strings.
  return names.find(name => name === value);
}

/** Returns the earliest creation time, rounded to minutes, so that the query for the same filters rarely changes. */
export const earliestTimeOf = (since: Since, nowMs: number): string =>
  new Date(Math.floor(nowMs / MINUTE_MS) * MINUTE_MS - SINCE_FILTERS[since].hours * HOUR_MS).toISOString();

/** Returns the query for the API. */
export function listQuery({ show = 'all', find = '', reason, key, since, lasted }: Filters, nowMs: number) {
  const status = STATUS_GROUPS[show].statuses.join(',');
  const q = searchQuery(find);
  return {
    ...(status ? { status } : {}),
    ...(q ? { q } : {}),
    ...(reason ? { endReason: reason } : {}),
    ...(key ? { keyId: key } : {}),
    ...(since ? { createdAfter: earliestTimeOf(since, nowMs) } : {}),
    ...(lasted ? DURATION_FILTERS[lasted].query : {}),
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The maximum number of words that the API accepts. */
const WORDS_MAX = 10;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isSessionId = (text: string): boolean => UUID.test(text.trim());

/** The beginning of a name=value pair of metadata. */
const PAIR = /^[\p{L}\p{N}_.-]+\s*=/u;
/** The beginning of a query in the query language of the API. */
const QUERY_SYNTAX = /^(user_metadata\b|\w+\[)/;

/** Converts `run=r-1842, team.name=blue` to the query language of the API. Anything else is searched for as words. */
export function searchQuery(text: string): string | undefined {
  const query = text.trim();
  if (query === '') return undefined;
  if (QUERY_SYNTAX.test(query)) return query;
  const terms = query.split(/\s*,\s*/).filter(term => term !== '');
  if (terms.length > 0 && terms.every(one => PAIR.test(one))) return terms.map(metadataTerm).join(' AND ');
  return query.split(/\s+/).slice(0, WORDS_MAX).join(' ');
}

function metadataTerm(text: string): string {
  const at = text.indexOf('=');
  const path = text.slice(0, at).trim().split('.');
  return `user_metadata${path.map(name => `['${quote(name)}']`).join('')}:'${quote(text.slice(at + 1).trim())}'`;
}

const quote = (text: string): string => text.replace(/[\\']/g, character => `\\${character}`);
