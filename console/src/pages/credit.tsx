// The credit of an application: the balance, the held amounts, the usage, the ledger, and a form to buy credit.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { CreditEntry, Credits, Reservation } from '../../../contract/credits.ts';
import { creditEntriesQuery, creditQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { CreditUse } from './credit-use.tsx';
import { type CreditView, ENTRY_WORDS, entryQueryOf, readCreditView } from './credit-words.ts';
import { creditWords } from './invocation-words.tsx';
import { TopUp } from './top-up.tsx';
import { SinceChoice, WordChoice } from './word-choice.tsx';

export function CreditPage({ app, view }: { readonly app: string; readonly view: CreditView }) {
  const { data, error, refetch } = useQuery(creditQuery(app));
  const isOwner = isAtLeast(useRole(app), 'owner');
  return (
    <Page
      title="Credit"
      about={
        <>
          What sessions and operation calls cost.{' '}
          <a href="/docs/credits" className="text-accent underline">
            How credit works
          </a>
        </>
      }
    >
      {data ? (
        <div className="grid gap-6">
          {data.enforced || data.balance > 0 ? <CreditTotals credits={data} /> : <NotChargedPanel />}
          <CreditUse app={app} view={view} isCharged={data.enforced || data.thisApplication.capturedThisMonth > 0} />
          <HeldReservations app={app} reservations={data.reservations} />
          <Ledger app={app} view={view} />
          <TopUp app={app} isOwner={isOwner} />
        </div>
      ) : (
        <Panel>
          {error ? (
            <LoadError error={error} retry={() => void refetch()} />
          ) : (
            <LoadingRows contentLabel="the credit" rows={4} />
          )}
        </Panel>
      )}
    </Page>
  );
}

const NotChargedPanel = () => (
  <Panel title="This installation does not charge">
    <p className="p-4 text-sm text-soft">
      No credit is needed. The usage of sessions and calls is still counted, and shown below. The operator sets the
      prices.
    </p>
  </Panel>
);

function CreditTotals({
  credits: { available, reserved, balance, thisApplication, rates, enforced },
}: {
  readonly credits: Credits;
}) {
  const isExhausted = enforced && available <= 0;
  return (
    <section
      aria-label="Balance"
      className="grid gap-px overflow-hidden rounded-lg border border-line bg-line @min-[560px]:grid-cols-3"
    >
      <Tile name="Available" value={creditWords(available)}>
        {isExhausted ? (
          <span className="font-medium text-bad">New work is refused until credit is added.</span>
        ) : (
          'for new work'
        )}
      </Tile>
      <Tile name="Held" value={creditWords(reserved)}>
        by running work, of {creditWords(balance)} in total
      </Tile>
      <Tile name="Used this month" value={creditWords(thisApplication.capturedThisMonth)}>
        by this application. A browser second costs {creditWords(rates.browserSecond)}, a megabyte{' '}
        {creditWords(rates.egressMegabyte)}.
      </Tile>
    </section>
  );
}

const Tile = ({
  name,
  value,
  children,
}: {
  readonly name: string;
  readonly value: string;
  readonly children: ReactNode;
}) => (
  <div className="bg-raised px-4 py-3">
    <p className="text-sm text-soft">{name}</p>
    <p className="mt-0.5 text-xl font-semibold tracking-tight break-words tabular-nums">{value}</p>
    <p className="text-xs text-soft">{children}</p>
  </div>
);

const LINK = 'underline decoration-line-strong underline-offset-2 hover:text-accent';

const HeldReservations = ({
  app,
  reservations,
}: {
  readonly app: string;
  readonly reservations: readonly Reservation[];
}) =>
  reservations.length === 0 ? null : (
    <Panel title="Held now">
      <ul className="divide-y divide-line">
        {reservations.map(({ id, purpose, amount, captured, createdAt }) => (
          <li key={id} className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 px-4 py-2.5 text-sm">
            <Link
              to={purpose.kind === 'session' ? '/a/$app/sessions/$id' : '/a/$app/invocations/$id'}
              params={{ app, id: purpose.id }}
              className={LINK}
            >
              {purpose.kind === 'session' ? 'Session' : 'Invocation'} {purpose.id.slice(0, 8)}
            </Link>
            <span className="tabular-nums">
              {creditWords(amount)}
              {captured > 0 && `, ${creditWords(captured)} used`}
              <span className="ml-3 text-xs text-soft">
                <Ago time={createdAt} />
              </span>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );

function Ledger({ app, view }: { readonly app: string; readonly view: CreditView }) {
  const queryFilters = entryQueryOf(view, Date.now());
  const list = useInfiniteQuery(creditEntriesQuery(app, queryFilters));
  const { data, error, refetch } = list;
  const navigate = useNavigate();
  const apply = (change: Readonly<Record<string, string>>): void => {
    const search = readCreditView({ ...view, ...change });
    void navigate({ to: '/a/$app/credit', params: { app }, search, replace: true });
  };
  const isFiltered = Object.keys(queryFilters).length > 0;
  return (
    <section>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
        <h2 className="text-base font-semibold">Ledger</h2>
        <search aria-label="Ledger filters" className="flex flex-wrap gap-2">
          <WordChoice
            label="Entry"
            value={view.type}
            choose={type => apply({ type })}
            any="Any entry"
            words={Object.entries(ENTRY_WORDS)}
          />
          <SinceChoice value={view.since} choose={since => apply({ since })} />
        </search>
      </div>
      <ListPanel
        contentLabel="ledger entries"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={
          isFiltered ? (
            <EmptyState icon="credit" title="No matching entries">
              Change or clear the filters.
            </EmptyState>
          ) : (
            <EmptyState icon="credit" title="No entries yet">
              Every change to the credit is listed here: credit that is bought or given, held for work, used, or given
              back. Entries are never changed.
            </EmptyState>
          )
        }
      >
        {entry => <EntryRow key={entry.id} entry={entry} />}
      </ListPanel>
      <LoadMore list={list} buttonText="Show older entries" />
    </section>
  );
}

const EntryRow = ({ entry: { type, legs, at, reason } }: { readonly entry: CreditEntry }) => (
  <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-6 gap-y-1 px-4 py-2.5 text-sm @min-[620px]:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_minmax(0,1fr)_76px] @min-[620px]:items-center">
    <div className="min-w-0">
      <p className="font-medium">{ENTRY_WORDS[type]}</p>
      {reason && <p className="text-xs break-words text-soft">{reason}</p>}
    </div>
    <p className="text-right tabular-nums @min-[620px]:text-left">
      {legs.revenue > 0 ? `${creditWords(legs.revenue)} used` : ''}
    </p>
    <p className="text-xs text-soft tabular-nums">
      {legs.available === 0 ? 'available unchanged' : `available ${signedCredits(legs.available)}`}
    </p>
    <p className="text-right text-xs text-soft">
      <Ago time={at} />
    </p>
  </li>
);

const signedCredits = (microCredits: number): string =>
  `${microCredits > 0 ? '+' : '\u2212'}${creditWords(Math.abs(microCredits))}`;
