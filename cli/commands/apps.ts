// `berth apps`: lists and creates applications, over HTTP.
import { dataOf, paginate } from '../../sdk/index.ts';
import { type HttpOptions, overHttp } from '../http/connection.ts';
import { printJson, type Terminal, table } from '../terminal.ts';

export const listApps = (terminal: Terminal, options: HttpOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const pagedItems = paginate(cursor =>
      berth.GET('/v1/applications', { params: { query: cursor ? { cursor } : {} } }),
    );
    const applications = await Array.fromAsync(pagedItems);
    if (options.json) return printJson(terminal, applications);
    const rows = applications.map(({ id, name, slug, role, createdAt }) => [id, name, slug, role, createdAt]);
    terminal.print(table([['ID', 'NAME', 'SLUG', 'ROLE', 'CREATED'], ...rows]));
  });

export interface CreateAppOptions extends HttpOptions {
  readonly slug?: string;
}

export const createApp = (terminal: Terminal, name: string, options: CreateAppOptions): Promise<void> =>
  overHttp(terminal, options, async ({ berth }) => {
    const body = { name, ...(options.slug === undefined ? {} : { slug: options.slug }) };
    const application = await dataOf(berth.POST('/v1/applications', { body }));
    if (options.json) return printJson(terminal, application);
    terminal.say(`Created application ${application.name} (${application.slug}):\n`);
    terminal.print(`${application.id}\n`);
  });
