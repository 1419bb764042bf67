// The audit log of an application: who did what, from where, newest first.
import { useInfiniteQuery } from '@tanstack/react-query';
import type { AuditEntry } from '../../../contract/audit.ts';
import { auditQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { Empty } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';

export function AuditPage({ app }: { readonly app: string }) {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(auditQuery(app));
  return (
    <Page
      title="Audit log"
      about={
        <>
          Who did what in this application. Entries are never changed, and are kept for 400 days.{' '}
          <code className="font-mono text-sm">berth audit verify</code> checks that none is missing.
        </>
      }
    >
      <ListPanel
        what="the audit log"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={<Empty icon="docs" title="No entries yet" />}
      >
        {entry => <Entry key={entry.id} entry={entry} />}
      </ListPanel>
      {hasNextPage && (
        <Button className="mt-4" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show older entries
        </Button>
      )}
    </Page>
  );
}

const Entry = ({ entry }: { readonly entry: AuditEntry }) => {
  const { action, outcome, actor, via, target, ip, at, details = {} } = entry;
  const facts = Object.entries(details).flatMap(([name, value]) => {
    const text = Array.isArray(value)
      ? value.join(', ')
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
    return text === '' ? [] : [`${name}: ${text}`];
  });
  return (
    <li className="grid gap-x-6 gap-y-1 px-4 py-3 md:grid-cols-[220px_minmax(0,1fr)_minmax(0,1fr)_110px] md:items-center">
      <p className="font-mono text-sm break-words">
        {action}
        {outcome === 'refused' && <span className="ml-2 font-sans text-xs text-bad">refused</span>}
      </p>
      <p className="min-w-0 text-sm break-words">
        {actor.name ?? actor.kind}
        {via && <span className="text-soft"> by {via.kind.replaceAll('_', ' ')}</span>}
        {ip && <span className="text-soft"> from {ip}</span>}
      </p>
      <p className="min-w-0 text-xs leading-relaxed break-words text-soft">
        {target && `${target.kind.replaceAll('_', ' ')} ${target.id}`}
        {facts.length > 0 && (
          <>
            <br />
            {facts.join('; ')}
          </>
        )}
      </p>
      <p className="text-xs text-soft md:text-right">
        <Ago time={at} />
      </p>
    </li>
  );
};
