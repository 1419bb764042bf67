// Empty states of the tabs that show the log.
import type { ReactNode } from 'react';
import type { SessionLogs } from '../api/use-session-logs.ts';
import { Empty, Failed, Loading } from '../ui/states.tsx';

export function LogsState({
  data,
  error,
  retry,
  isEmpty,
  nothing: emptyTitle,
  children,
}: {
  readonly data: SessionLogs | undefined;
  readonly error: unknown;
  readonly retry: () => void;
  readonly isEmpty: boolean;
  /** Title if the log has no entries of this kind. */
  readonly nothing: string;
  readonly children: ReactNode;
}) {
  if (error && !data) return <Failed error={error} retry={retry} />;
  if (!data) return <Loading what="the log" rows={6} />;
  if (!isEmpty) return children;
  if (data.emptyReason === 'disabled')
    return (
      <Empty icon="sessions" title="No log">
        The session was created with <code>logSession</code> false.
      </Empty>
    );
  if (data.emptyReason === 'expired')
    return (
      <Empty icon="sessions" title="The log was deleted">
        Logs are kept for 31 days after the end of a session.
      </Empty>
    );
  return <Empty icon="sessions" title={emptyTitle} />;
}
