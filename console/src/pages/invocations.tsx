// Invocations of an application: which agent called which operation, and the outcome.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Invocation } from '../../../contract/invocations.ts';
import { invocationsQuery, keysQuery, operationIdsQuery } from '../api/queries.ts';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import {
  type InvocationFilters,
  invocationQueryOf,
  readInvocationFilters,
  STATUS_WORDS,
} from './invocation-filters.ts';
import { creditWords, elapsedWords, InvocationState } from './invocation-words.tsx';
import { SinceChoice, WordChoice } from './word-choice.tsx';

export function InvocationsPage({ app, filters }: { readonly app: string; readonly filters: InvocationFilters }) {
  const queryFilters = invocationQueryOf(filters, Date.now());
  const list = useInfiniteQuery(invocationsQuery(app, queryFilters));
  const { data, error, refetch } = list;
  const { data: keys } = useQuery(keysQuery(app));
  const keyNames = new Map(keys?.map(({ id, name }) => [id, name]));
  const isFiltered = Object.keys(queryFilters).length > 0;
  return (
    <Page
      title="Invocations"
      about={
        <>
          Calls of operations by agents, each with a signed receipt.{' '}
          <a href="/docs/operations" className="text-accent underline">
            How operations work
          </a>
        </>
      }
    >
      <Filters app={app} filters={filters} keys={keys ?? []} />
      <ListPanel
        contentLabel="invocations"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={
          isFiltered ? (
            <EmptyState icon="invocations" title="No matching invocations">
              Change or clear the filters.
            </EmptyState>
          ) : (
            <EmptyState icon="invocations" title="No invocations yet">
              They appear here when an agent calls an operation that its key has a grant for.
            </EmptyState>
          )
        }
      >
        {one => <Row key={one.id} app={app} invocation={one} keyName={keyNames.get(one.caller.keyId)} />}
      </ListPanel>
      <LoadMore list={list} buttonText="Show older invocations" />
    </Page>
  );
}

function Filters({
  app,
  filters,
  keys,
}: {
  readonly app: string;
  readonly filters: InvocationFilters;
  readonly keys: ReadonlyArray<{ readonly id: string; readonly name: string }>;
}) {
  const navigate = useNavigate();
  const [needsOperations, setNeedsOperations] = useState(filters.operation !== undefined);
  const { data: operationIds = [] } = useQuery({ ...operationIdsQuery(app), enabled: needsOperations });
  const { operation } = filters;
  // A deleted operation can still have invocations, so it remains an option of the filter while it is selected.
  const operationOptions =
    operation === undefined || operationIds.includes(operation) ? operationIds : [operation, ...operationIds];
  const apply = (change: Readonly<Record<string, string>>): void => {
    const search = readInvocationFilters({ ...filters, ...change });
    void navigate({ to: '/a/$app/invocations', params: { app }, search, replace: true });
  };
  return (
    <search aria-label="Filters" className="mb-3 flex flex-wrap items-center gap-2">
      <WordChoice
        label="State"
        value={filters.state}
        choose={state => apply({ state })}
        any="Any state"
        words={Object.entries(STATUS_WORDS).map(([state, { word }]) => [state, word])}
      />
      <WordChoice
        label="Operation"
        value={operation}
        choose={next => apply({ operation: next })}
        any="Any operation"
        onPointerOrFocus={() => setNeedsOperations(true)}
        words={operationOptions.map(one => [one, one])}
      />
      <WordChoice
        label="Agent key"
        value={filters.key}
        choose={key => apply({ key })}
        any="Any agent key"
        words={keys.map(({ id, name }) => [id, name])}
      />
      <SinceChoice value={filters.since} choose={since => apply({ since })} />
    </search>
  );
}

const Row = ({
  app,
  invocation,
  keyName,
}: {
  readonly app: string;
  readonly invocation: Invocation;
  readonly keyName: string | undefined;
}) => {
  const { id, operationId, status, error, createdAt, endedAt, cost, caller } = invocation;
  return (
    <li className="relative grid grid-cols-[minmax(0,1fr)_auto] gap-x-6 gap-y-1 px-4 py-2.5 hover:bg-sunk @min-[720px]:grid-cols-[minmax(0,1.3fr)_minmax(0,1fr)_minmax(0,1fr)_minmax(0,0.8fr)_76px] @min-[720px]:items-center">
      <div className="min-w-0">
        <Link
          to="/a/$app/invocations/$id"
          params={{ app, id }}
          className="block truncate font-medium after:absolute after:inset-0 hover:text-accent"
        >
          {operationId}
        </Link>
        <code className="block truncate font-mono text-xs text-soft">{id}</code>
      </div>
      <div className="min-w-0 max-w-40 text-right @min-[720px]:max-w-none @min-[720px]:text-left">
        <InvocationState status={status} />
        {error && <code className="block truncate font-mono text-xs text-soft">{error.code}</code>}
      </div>
      <p className="truncate text-sm text-soft" title={caller.keyId}>
        <span className="@min-[720px]:sr-only">by </span>
        {keyName ?? `key ${caller.keyId.slice(0, 8)}`}
      </p>
      <p className="text-right text-xs text-soft tabular-nums @min-[720px]:text-sm">
        {endedAt === undefined ? 'under way' : elapsedWords(createdAt, endedAt)}
        <span className="text-xs @min-[720px]:block">
          <span className="@min-[720px]:hidden"> · </span>
          {creditWords(cost.captured)}
        </span>
      </p>
      <p className="text-xs text-soft @min-[720px]:text-right">
        <Ago time={createdAt} />
      </p>
    </li>
  );
};
