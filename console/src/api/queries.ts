// Queries of the pages: their cache keys and how they are fetched.
import { infiniteQueryOptions, keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import type { AgentKey } from '../../../contract/agent-keys.ts';
import type { AuditQuery } from '../../../contract/audit.ts';
import type { CreditEntryQuery } from '../../../contract/credits.ts';
import type { ApplicationInvocationListQuery } from '../../../contract/invocations.ts';
import { searchQuery } from '../pages/session-filters.ts';
import { ApiError } from './api-error.ts';
import { call, sendRequest } from './call.ts';

const STALE_TIME_MS = 5_000;
const RETRIES_MAX = 2;
const APPLICATIONS_MAX = 100;
const KEYS_PER_PAGE = 100;
/**
 * The maximum number of keys to read. The API lists inactive keys for 90 days, so a list page may contain no active
 * key.
 */
const KEYS_READ_MAX = 5_000;
const CONTEXTS_MAX = 200;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: STALE_TIME_MS, retry: (count, error) => count < RETRIES_MAX && isTransient(error) },
    mutations: { retry: false },
  },
});

/** Whether a retry may succeed: the network failed, or the service had an internal error. */
const isTransient = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 0 || error.status >= 500);

export const applicationsQuery = queryOptions({
  queryKey: ['applications'],
  queryFn: ({ signal }) => call('listApplications', { query: { limit: APPLICATIONS_MAX }, signal }),
});

export const accountQuery = queryOptions({
  queryKey: ['account'],
  queryFn: ({ signal }) => call('readAccount', { signal }),
});

export const signedInSessionsQuery = queryOptions({
  queryKey: ['signed-in'],
  queryFn: ({ signal }) => call('listSignedInSessions', { signal }),
});

export const currentTokenQuery = queryOptions({
  queryKey: ['token'],
  queryFn: ({ signal }) => call('readCurrentToken', { signal }),
});

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => call('listTokens', { query: { limit: KEYS_PER_PAGE }, signal }),
});

const MEMBERS_PER_PAGE = 50;
const CREDENTIALS_PER_PAGE = 100;
const WEBHOOKS_PER_PAGE = 50;
const WEBHOOKS_INTERVAL_MS = 5_000;
const DELIVERIES_PER_PAGE = 25;
const DELIVERIES_INTERVAL_MS = 3_000;
const ENTRIES_PER_PAGE = 50;

/** The paging options for a list with a cursor. */
const PAGING_OPTIONS = {
  initialPageParam: '',
  getNextPageParam: ({ nextCursor }: { readonly nextCursor?: string }) => nextCursor,
};
const pageQueryOf = (limit: number, cursor: string) => ({ limit, ...(cursor === '' ? {} : { cursor }) });

export const membersQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['members', app],
    queryFn: ({ signal, pageParam }) =>
      call('listMembers', { params: { appId: app }, query: pageQueryOf(MEMBERS_PER_PAGE, pageParam), signal }),
  });

export const invitationsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['invitations', app],
    queryFn: ({ signal, pageParam }) =>
      call('listInvitations', { params: { appId: app }, query: pageQueryOf(MEMBERS_PER_PAGE, pageParam), signal }),
  });

export const storedCredentialsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['credentials', app],
    queryFn: ({ signal, pageParam }) =>
      call('listStoredCredentials', {
        params: { appId: app },
        query: pageQueryOf(CREDENTIALS_PER_PAGE, pageParam),
        signal,
      }),
  });

/** Polled, because a webhook can begin to fail, or be disabled, at any time. */
export const webhooksQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['webhooks', app],
    queryFn: ({ signal, pageParam }) =>
      call('listWebhooks', { params: { appId: app }, query: pageQueryOf(WEBHOOKS_PER_PAGE, pageParam), signal }),
    refetchInterval: WEBHOOKS_INTERVAL_MS,
  });

/** Polled, because deliveries change without a request from this page. */
export const webhookDeliveriesQuery = (app: string, webhookId: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['webhooks', app, webhookId, 'deliveries'],
    queryFn: ({ signal, pageParam }) =>
      call('listWebhookDeliveries', {
        params: { appId: app, webhookId },
        query: pageQueryOf(DELIVERIES_PER_PAGE, pageParam),
        signal,
      }),
    refetchInterval: DELIVERIES_INTERVAL_MS,
  });

export const auditQuery = (app: string, filters: Omit<AuditQuery, 'limit' | 'cursor'>) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['audit', app, filters],
    queryFn: ({ signal, pageParam }) =>
      call('listAuditEntries', {
        params: { appId: app },
        query: { ...filters, ...pageQueryOf(ENTRIES_PER_PAGE, pageParam) },
        signal,
      }),
  });

const INVOCATIONS_PER_PAGE = 50;
const INVOCATIONS_INTERVAL_MS = 5_000;
const RUNNING_INTERVAL_MS = 2_000;
const OPERATIONS_PER_PAGE = 100;

/** Polled, because agents call operations at any time. */
export const invocationsQuery = (app: string, filters: Omit<ApplicationInvocationListQuery, 'limit' | 'cursor'>) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['invocations', app, filters],
    queryFn: ({ signal, pageParam }) =>
      call('listApplicationInvocations', {
        params: { appId: app },
        query: { ...filters, ...pageQueryOf(INVOCATIONS_PER_PAGE, pageParam) },
        signal,
      }),
    refetchInterval: INVOCATIONS_INTERVAL_MS,
  });

const WAITING_MAX = 100;
const HISTORY_PER_PAGE = 50;
/**
 * The polling interval of the waiting items, for users who signed in with a token. For a person, live-inbox.ts also
 * refetches the lists of the inbox after every change.
 */
const INBOX_INTERVAL_MS = 30_000;

/** All waiting items, including those that other people must act on. */
export const waitingQuery = (app: string) =>
  queryOptions({
    queryKey: ['inbox', app, 'waiting'],
    queryFn: async ({ signal }) => {
      const [params, limit] = [{ appId: app }, WAITING_MAX];
      const [actions, requestedHandoffs, claimedHandoffs] = await Promise.all([
        call('listApplicationActions', { params, query: { limit, status: 'awaiting_approval' }, signal }),
        call('listHandoffs', { params, query: { limit, status: 'requested' }, signal }),
        call('listHandoffs', { params, query: { limit, status: 'claimed' }, signal }),
      ]);
      return { actions: actions.data, handoffs: [...requestedHandoffs.data, ...claimedHandoffs.data] };
    },
    refetchInterval: INBOX_INTERVAL_MS,
  });

export const actionsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['inbox', app, 'actions'],
    queryFn: ({ signal, pageParam }) =>
      call('listApplicationActions', {
        params: { appId: app },
        query: pageQueryOf(HISTORY_PER_PAGE, pageParam),
        signal,
      }),
  });

export const handoffsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['inbox', app, 'handoffs'],
    queryFn: ({ signal, pageParam }) =>
      call('listHandoffs', { params: { appId: app }, query: pageQueryOf(HISTORY_PER_PAGE, pageParam), signal }),
  });

const HOSTS_INTERVAL_MS = 5_000;

export const hostsQuery = queryOptions({
  queryKey: ['hosts'],
  queryFn: ({ signal }) => call('listHosts', { signal }),
  refetchInterval: HOSTS_INTERVAL_MS,
});

export const hostSessionsQuery = (hostId: string) =>
  queryOptions({
    queryKey: ['hosts', hostId, 'sessions'],
    queryFn: ({ signal }) => call('listHostSessions', { params: { hostId }, signal }),
    refetchInterval: HOSTS_INTERVAL_MS,
  });

export const notificationsQuery = queryOptions({
  queryKey: ['notifications'],
  queryFn: ({ signal }) => call('readNotifications', { signal }),
});

/** Polled until the invocation has ended. */
export const invocationQuery = (app: string, id: string) =>
  queryOptions({
    queryKey: ['invocation', app, id],
    queryFn: ({ signal }) => call('readApplicationInvocation', { params: { appId: app, id }, signal }),
    refetchInterval: ({ state }) => state.data?.status === 'running' && RUNNING_INTERVAL_MS,
  });

const CREDIT_INTERVAL_MS = 10_000;
const ENTRIES_INTERVAL_MS = 30_000;
const CHECKOUTS_PER_PAGE = 10;
const CHECKOUTS_INTERVAL_MS = 10_000;
const QUOTE_INTERVAL_MS = 300_000;

export const creditQuery = (app: string) =>
  queryOptions({
    queryKey: ['credit', app],
    queryFn: ({ signal }) => call('readCredits', { params: { appId: app }, signal }),
    refetchInterval: CREDIT_INTERVAL_MS,
  });

export const creditEntriesQuery = (app: string, filters: Omit<CreditEntryQuery, 'limit' | 'cursor'>) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['credit', app, 'entries', filters],
    queryFn: ({ signal, pageParam }) =>
      call('listCreditEntries', {
        params: { appId: app },
        query: { ...filters, ...pageQueryOf(ENTRIES_PER_PAGE, pageParam) },
        signal,
      }),
    refetchInterval: ENTRIES_INTERVAL_MS,
  });

/** Packs and prices, with the quote id that an order must name. */
export const quoteQuery = (app: string) =>
  queryOptions({
    queryKey: ['top-ups', app, 'quote'],
    queryFn: ({ signal }) => call('readQuote', { params: { appId: app }, signal }),
    // Refetched, because an order names a quote, which expires after 15 minutes.
    refetchInterval: QUOTE_INTERVAL_MS,
  });

/** Polled, because the operator confirms payments. */
export const checkoutsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['top-ups', app, 'orders'],
    queryFn: ({ signal, pageParam }) =>
      call('listCheckouts', { query: { applicationId: app, ...pageQueryOf(CHECKOUTS_PER_PAGE, pageParam) }, signal }),
    refetchInterval: CHECKOUTS_INTERVAL_MS,
  });

/** The keys with which receipts are verified. They are fetched for each verification. */
export const signingKeysQuery = queryOptions({
  queryKey: ['signing-keys'],
  queryFn: ({ signal }) => call('readSigningKeys', { signal }),
  staleTime: 0,
});

/** Ids of the operations for the filter of a list. */
export const operationIdsQuery = (app: string) =>
  queryOptions({
    queryKey: ['operations', app, 'names'],
    queryFn: async ({ signal }) => {
      const query = { limit: OPERATIONS_PER_PAGE };
      const { data } = await call('listConfiguredOperations', { params: { appId: app }, query, signal });
      return data.map(({ id }) => id);
    },
  });

/** Built-in operations and those of the application, with their newest revisions. */
export const operationsQuery = (app: string) =>
  infiniteQueryOptions({
    ...PAGING_OPTIONS,
    queryKey: ['operations', app, 'list'],
    queryFn: ({ signal, pageParam }) =>
      call('listConfiguredOperations', {
        params: { appId: app },
        query: pageQueryOf(OPERATIONS_PER_PAGE, pageParam),
        signal,
      }),
  });

export const operationQuery = (app: string, id: string) =>
  queryOptions({
    queryKey: ['operations', app, 'one', id],
    queryFn: ({ signal }) => call('readConfiguredOperation', { params: { appId: app, id }, signal }),
  });

/** Not fetched again, because a revision does not change. */
export const operationRevisionQuery = (app: string, id: string, revision: number) =>
  queryOptions({
    queryKey: ['operation-revision', app, id, revision],
    queryFn: ({ signal }) =>
      call('readConfiguredOperation', { params: { appId: app, id }, query: { revision }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Fetched only when the page is opened, because the request requires a step-up. */
export const mailsQuery = queryOptions({
  queryKey: ['mails'],
  queryFn: ({ signal }) => call('listMails', { signal }),
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: 0,
  retry: false,
});

export const keysQuery = (app: string) =>
  queryOptions({
    queryKey: ['keys', app],
    queryFn: async ({ signal }) => {
      const keys: AgentKey[] = [];
      let cursor: string | undefined;
      do {
        const query = { limit: KEYS_PER_PAGE, ...(cursor === undefined ? {} : { cursor }) };
        const page = await call('listAgentKeys', { params: { appId: app }, query, signal });
        keys.push(...page.data);
        cursor = page.nextCursor;
      } while (cursor !== undefined && keys.length < KEYS_READ_MAX);
      return keys;
    },
    placeholderData: keepPreviousData,
  });

export const limitsQuery = (app: string) =>
  queryOptions({
    queryKey: ['limits', app],
    queryFn: ({ signal }) => call('readLimits', { params: { appId: app }, signal }),
  });

export const sessionQuery = (app: string, id: string) =>
  queryOptions({
    queryKey: ['session', app, id],
    queryFn: ({ signal }) => call('readSession', { app, params: { id }, signal }),
  });

const SESSIONS_FOUND_MAX = 6;

/** Sessions that match every word, newest first. */
export const sessionSearchQuery = (app: string, searchWords: string) =>
  queryOptions({
    queryKey: ['sessions', app, 'found', searchWords],
    queryFn: ({ signal }) =>
      call('listSessions', {
        app,
        query: { limit: SESSIONS_FOUND_MAX, q: searchQuery(searchWords) ?? searchWords },
        signal,
      }),
    retry: false,
  });

const PICTURE_INTERVAL_MS = 10_000;
/**
 * The maximum number of requests for the last picture of a session. That picture is stored soon after the session ends,
 * or never.
 */
const LAST_PICTURE_READS_MAX = 10;
const LAST_PICTURE_INTERVAL_MS = 2_000;

/** `null` if there is no picture. The picture of an ended session does not change. */
export const pictureQuery = (app: string, id: string, hasEnded: boolean) =>
  queryOptions({
    queryKey: ['picture', app, id, hasEnded],
    queryFn: async ({ signal }) => {
      const response = await sendRequest('readPicture', { app, params: { id }, signal });
      return response.status === 204 ? null : response.blob();
    },
    staleTime: hasEnded ? Number.POSITIVE_INFINITY : PICTURE_INTERVAL_MS,
    refetchInterval: ({ state }) => {
      const isAwaited = state.data === null && state.dataUpdateCount < LAST_PICTURE_READS_MAX;
      if (hasEnded) return isAwaited ? LAST_PICTURE_INTERVAL_MS : false;
      return PICTURE_INTERVAL_MS;
    },
    retry: false,
  });

/** Not retried, because this is a compatibility route, which the operator may have turned off. */
export const usageQuery = (app: string) =>
  queryOptions({
    queryKey: ['usage', app],
    queryFn: ({ signal }) => call('readProjectUsage', { app, params: { id: app }, signal }),
    retry: false,
  });

export const contextsQuery = (app: string) =>
  queryOptions({
    queryKey: ['contexts', app],
    queryFn: ({ signal }) => call('listContexts', { app, query: { limit: CONTEXTS_MAX }, signal }),
  });

export const certificatesQuery = (app: string) =>
  queryOptions({
    queryKey: ['certificates', app],
    queryFn: ({ signal }) => call('listCertificates', { app, signal }),
  });
