// Content that only the operator sees.
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { accountQuery } from '../api/queries.ts';
import { Panel } from '../ui/page.tsx';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';

export function ForOperator({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch } = useQuery(accountQuery);
  if (error && !data) return <LoadError error={error} retry={() => void refetch()} />;
  if (!data)
    return (
      <Panel>
        <LoadingRows contentLabel="the account" rows={3} />
      </Panel>
    );
  return data.isOperator ? (
    children
  ) : (
    <Panel>
      <EmptyState icon="host" title="Only for the operator">
        Hosts are shared by all applications, so only the account that was set up at the first start can see them.
      </EmptyState>
    </Panel>
  );
}
