// `berth sessions`: lists, reads, creates and releases sessions, and prints their logs and events, over HTTP.
import { dataOf, paginate, type Session } from '../../sdk/index.ts';
import { type KeyOptions, overHttp } from '../http/connection.ts';
import { printJson, type Terminal, table } from '../terminal.ts';

const LIST_PAGE_MAX = 100;

export interface ListSessionsOptions extends KeyOptions {
  /** One status, or several separated by commas. */
  readonly status?: string;
  readonly limit: number;
}

export const listSessions = (terminal: Terminal, options: ListSessionsOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const { status, limit } = options;
    const query = { limit: Math.min(limit, LIST_PAGE_MAX), ...(status ? { status } : {}) };
    const pagedItems = paginate(before =>
      berth.GET('/v1/browsers/sessions', { params: { query: { ...query, ...(before ? { before } : {}) } } }),
    );
    const sessions: Session[] = [];
    for await (const session of pagedItems) if (sessions.push(session) === limit) break;
    if (options.json) return printJson(terminal, sessions);
    const rows = sessions.map(({ id, status, createdAt, endedAt = '', endReason = '', userMetadata }) => [
      ...[id, status, createdAt, endedAt, endReason],
      userMetadata && Object.keys(userMetadata).length > 0 ? JSON.stringify(userMetadata) : '',
    ]);
    terminal.print(table([['ID', 'STATUS', 'CREATED', 'ENDED', 'REASON', 'METADATA'], ...rows]));
  });

export const readSession = (terminal: Terminal, id: string, options: KeyOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const session = await dataOf(berth.GET('/v1/browsers/sessions/{id}', { params: { path: { id } } }));
    if (options.json) return printJson(terminal, session);
    const rows = Object.entries(session).map(([name, value]) => [name, textOf(value)]);
    terminal.print(table(rows));
  });

export interface CreateSessionOptions extends KeyOptions {
  readonly timeout?: number;
  readonly keepAlive?: true;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly wait?: number;
}

export const createSession = (terminal: Terminal, options: CreateSessionOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const { timeout, keepAlive, metadata, wait } = options;
    const session = await dataOf(
      berth.POST('/v1/browsers/sessions', {
        params: { header: wait === undefined ? {} : { Prefer: `wait=${wait}` } },
        body: {
          ...(timeout === undefined ? {} : { timeout }),
          ...(keepAlive ? { keepAlive } : {}),
          ...(metadata ? { userMetadata: metadata } : {}),
        },
      }),
    );
    if (options.json) return printJson(terminal, session);
    terminal.say(`Session ${session.id} is ${session.status}. Its address contains a key:\n`);
    terminal.print(`${session.connectUrl ?? session.id}\n`);
  });

export const releaseSession = (terminal: Terminal, id: string, options: KeyOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const body = { status: 'REQUEST_RELEASE' } as const;
    const session = await dataOf(berth.POST('/v1/browsers/sessions/{id}', { params: { path: { id } }, body }));
    if (options.json) return printJson(terminal, session);
    terminal.say(`Session ${id} is ${session.status}${session.endReason ? ` (${session.endReason})` : ''}.\n`);
  });

export interface EventsOptions extends KeyOptions {
  readonly type?: string;
  readonly from?: Date;
  readonly to?: Date;
}

export interface LogsOptions extends EventsOptions {
  readonly page?: number;
}

export const printSessionLogs = (terminal: Terminal, id: string, options: LogsOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const { page } = options;
    const filter = { ...filterOf(options), ...(page === undefined ? {} : { pageId: page }) };
    const pagedItems = paginate(after =>
      berth.GET('/v1/browsers/sessions/{id}/logs', {
        params: { path: { id }, query: { ...filter, ...(after ? { after } : {}) } },
      }),
    );
    if (options.json) return printJson(terminal, await Array.fromAsync(pagedItems));
    for await (const { timestamp, pageId, method, request, response } of pagedItems) {
      const time = timestamp === undefined ? '' : new Date(timestamp).toISOString();
      const outcome = response ? ` -> ${JSON.stringify(response.result)}` : '';
      terminal.print(`${time}  page ${pageId}  ${method}  ${JSON.stringify(request?.params ?? {})}${outcome}\n`);
    }
  });

export const printSessionEvents = (terminal: Terminal, id: string, options: EventsOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const filter = filterOf(options);
    const pagedItems = paginate(after =>
      berth.GET('/v1/browsers/sessions/{id}/events', {
        params: { path: { id }, query: { ...filter, ...(after ? { after } : {}) } },
      }),
    );
    if (options.json) return printJson(terminal, await Array.fromAsync(pagedItems));
    for await (const { time, type, actor, detail } of pagedItems)
      terminal.print(`${time}  ${type}  ${actor.kind}  ${JSON.stringify(detail)}\n`);
  });

const filterOf = ({ type, from, to }: EventsOptions) => ({
  ...(type === undefined ? {} : { type }),
  ...(from === undefined ? {} : { from: from.toISOString() }),
  ...(to === undefined ? {} : { to: to.toISOString() }),
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
