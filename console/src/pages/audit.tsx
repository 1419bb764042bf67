// The audit log of an application: who did what, from where, newest first.
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { AuditAction, AuditEntry } from '../../../contract/audit.ts';
import { auditQuery } from '../api/queries.ts';
import { Icon } from '../ui/icon.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { earliestTimeOf, isSessionId as isUuid, readFilters, type Since } from './session-filters.ts';
import { SinceChoice, WordChoice } from './word-choice.tsx';

/** Actions within an application. Entries about people and about the installation are not shown here. */
const ACTIONS = [
  ...['application.created', 'application.renamed', 'limits.changed'],
  ...['agent_key.created', 'agent_key.changed', 'agent_key.rotated', 'agent_key.revoked', 'agent_key.refused_address'],
  ...['invitation.created', 'invitation.revoked', 'invitation.accepted', 'invitation.refused'],
  ...['member.role_changed', 'member.removed', 'member.left'],
  ...['device.approved', 'device.denied'],
] as readonly AuditAction[];

export interface AuditFilters {
  readonly action?: AuditAction;
  readonly actor?: string;
  readonly since?: Since;
}

export function readAuditFilters(search: Record<string, unknown>): AuditFilters {
  const action = ACTIONS.find(one => one === search.action);
  const { since } = readFilters({ since: search.since });
  return {
    ...(action ? { action } : {}),
    ...(typeof search.actor === 'string' && isUuid(search.actor) ? { actor: search.actor } : {}),
    ...(since ? { since } : {}),
  };
}

export function AuditPage({ app, filters }: { readonly app: string; readonly filters: AuditFilters }) {
  const { action, actor, since } = filters;
  const afterTime = since && earliestTimeOf(since, Date.now());
  const queryFilters = {
    ...(action ? { action } : {}),
    ...(actor ? { actor } : {}),
    ...(afterTime ? { after: afterTime } : {}),
  };
  const list = useInfiniteQuery(auditQuery(app, queryFilters));
  const { data, error, refetch } = list;
  const navigate = useNavigate();
  const apply = (change: Readonly<Record<string, string>>): void => {
    const search = readAuditFilters({ ...filters, ...change });
    void navigate({ to: '/a/$app/audit', params: { app }, search, replace: true });
  };
  const entries = data?.pages.flatMap(page => page.data);
  const actorName = entries?.find(entry => entry.actor.id === actor)?.actor.name ?? actor;
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
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <WordChoice
          label="Action"
          value={action}
          choose={next => apply({ action: next })}
          any="Any action"
          words={ACTIONS.map(one => [one, one])}
        />
        <SinceChoice value={since} choose={next => apply({ since: next })} />
        {actor && (
          <button
            type="button"
            onClick={() => apply({ actor: '' })}
            className="inline-flex h-10 max-w-full items-center gap-1.5 rounded-md border border-accent bg-accent-soft px-2 text-sm font-medium text-accent md:h-8"
          >
            <span className="truncate">Only by {actorName}</span>
            <Icon name="close" size={14} />
            <span className="sr-only">Show all actors</span>
          </button>
        )}
      </div>
      <ListPanel
        contentLabel="the audit log"
        items={entries}
        error={error}
        retry={refetch}
        empty={
          <EmptyState
            icon="docs"
            title={Object.keys(queryFilters).length > 0 ? 'No matching entries' : 'No entries yet'}
          />
        }
      >
        {entry => <Entry key={entry.id} entry={entry} onActorClick={id => apply({ actor: id })} />}
      </ListPanel>
      <LoadMore list={list} buttonText="Show older entries" />
    </Page>
  );
}

const Entry = ({
  entry,
  onActorClick,
}: {
  readonly entry: AuditEntry;
  readonly onActorClick: (actor: string) => void;
}) => {
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
    <li className="grid gap-x-6 gap-y-1 px-4 py-3 @min-[620px]:grid-cols-[190px_minmax(0,0.8fr)_minmax(0,1.4fr)_76px] @min-[620px]:items-center">
      <p className="font-mono text-sm break-words">
        {action}
        {outcome === 'refused' && <span className="ml-2 font-sans text-xs text-bad">refused</span>}
      </p>
      <p className="min-w-0 text-sm break-words">
        {actor.id === undefined ? (
          (actor.name ?? actor.kind)
        ) : (
          <button
            type="button"
            title="Show only what this actor did"
            onClick={() => onActorClick(actor.id ?? '')}
            className="underline decoration-line-strong underline-offset-2 hover:text-accent"
          >
            {actor.name ?? actor.kind}
          </button>
        )}
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
      <p className="text-xs text-soft @min-[620px]:text-right">
        <Ago time={at} />
      </p>
    </li>
  );
};
