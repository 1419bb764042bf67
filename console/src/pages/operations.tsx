// Operations that agents can call: built-in ones, and those of the application.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { operationsQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { APPROVAL_WORDS, EFFECT_WORDS, KIND_WORDS, OperationState, priceWords } from './operation-words.tsx';

export function OperationsPage({ app }: { readonly app: string }) {
  const list = useInfiniteQuery(operationsQuery(app));
  const { data, error, refetch } = list;
  const mayWrite = isAtLeast(useRole(app), 'developer');
  const allOperations = data?.pages.flatMap(page => page.data);
  const newOperationLink = (
    <Link to="/a/$app/operations/new" params={{ app }} className={buttonClass('primary')}>
      <Icon name="plus" size={16} />
      New operation
    </Link>
  );
  return (
    <Page
      title="Operations"
      about={
        <>
          Tasks that an agent runs with one call, if its key has a grant for them.{' '}
          <a href="/docs/operations" className="text-accent underline">
            How operations work
          </a>
        </>
      }
      actions={mayWrite && newOperationLink}
    >
      <h2 className="mb-2 text-sm font-semibold">Of this application</h2>
      <ListPanel
        contentLabel="operations"
        items={allOperations?.filter(({ kind }) => kind !== 'managed')}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="operations" title="No operations of your own">
            {mayWrite
              ? 'Create one that calls a service or runs steps in a browser, with a schema for its input. Agents see neither the address nor the credential.'
              : 'A developer of this application can create one that calls a service or runs steps in a browser.'}
          </EmptyState>
        }
      >
        {operation => <Row key={operation.id} app={app} operation={operation} />}
      </ListPanel>
      <LoadMore list={list} buttonText="Show more operations" />
      <h2 className="mt-8 mb-2 text-sm font-semibold">Built in</h2>
      <ListPanel
        contentLabel="built-in operations"
        items={allOperations?.filter(({ kind }) => kind === 'managed')}
        error={error}
        retry={refetch}
        empty={<EmptyState icon="operations" title="No built-in operations" />}
      >
        {operation => <Row key={operation.id} app={app} operation={operation} />}
      </ListPanel>
    </Page>
  );
}

const Row = ({ app, operation }: { readonly app: string; readonly operation: ConfiguredOperation }) => {
  const { id, kind, title, effect, approval, updatedAt } = operation;
  return (
    <li className="relative grid gap-x-6 gap-y-1 px-4 py-2.5 hover:bg-sunk @min-[720px]:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_minmax(0,1fr)_76px] @min-[720px]:items-center">
      <div className="min-w-0">
        <Link
          to="/a/$app/operations/$id"
          params={{ app, id }}
          className="block font-medium break-words after:absolute after:inset-0 hover:text-accent"
        >
          {id}
        </Link>
        <p className="truncate text-sm text-soft">{title}</p>
      </div>
      <div className="min-w-0">
        <OperationState operation={operation} />
        <p className="text-xs text-soft">{KIND_WORDS[kind]}</p>
      </div>
      <div className="min-w-0 text-xs leading-relaxed text-soft">
        <p>
          {EFFECT_WORDS[effect]}
          {approval !== 'none' && `, ${APPROVAL_WORDS[approval].toLowerCase()} approves`}
        </p>
        <p>{priceWords(operation)}</p>
      </div>
      <p className="text-xs text-soft @min-[720px]:text-right">
        {updatedAt && (
          <>
            <span className="@min-[720px]:sr-only">Changed </span>
            <Ago time={updatedAt} />
          </>
        )}
      </p>
    </li>
  );
};
