// Empty states of the tabs that show the log.
import type { ReactNode } from 'react';
import type { SessionLogs } from '../api/use-session-logs.ts';
import { EmptyState, LoadError, LoadingRows } from '../ui/states.tsx';

export function LogsState({
  data,
  error,
  retry,
  isEmpty,
  titleIfEmpty,
  children,
}: {
  readonly data: SessionLogs | undefined;
  readonly error: unknown;
  readonly retry: () => void;
  readonly isEmpty: boolean;
  /** Title if the log has no entries of this kind. */
  readonly titleIfEmpty: string;
  readonly children: ReactNode;
}) {
  if (error && !data) return <LoadError error={error} retry={retry} />;
  if (!data) return <LoadingRows contentLabel="the log" rows={6} />;
  if (!isEmpty) return children;
  if (data.emptyReason === 'disabled')
    return (
      <EmptyState icon="sessions" title="No log">
        The session was created with <code>logSession</code> false.
      </EmptyState>
    );
  if (data.emptyReason === 'expired')
    return (
      <EmptyState icon="sessions" title="The log was deleted">
        Logs are kept for 31 days after the end of a session.
      </EmptyState>
    );
  return <EmptyState icon="sessions" title={titleIfEmpty} />;
}
