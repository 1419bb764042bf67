// The bar below the list of sessions while some sessions are selected. It has a button that releases all of these
// sessions.
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';

/** The maximum number of concurrent requests. */
const CONCURRENT_RELEASES_MAX = 8;

export function SelectedSessions({
  app,
  ids,
  clear,
}: {
  readonly app: string;
  readonly ids: readonly string[];
  readonly clear: () => void;
}) {
  const [isAsking, setIsAsking] = useState(false);
  const client = useQueryClient();
  const countText = ids.length === 1 ? '1 session' : `${ids.length} sessions`;
  return (
    <section
      aria-label="Selected sessions"
      className="sticky bottom-4 z-20 mx-auto mt-4 flex w-fit items-center gap-2 rounded-lg border border-line-strong bg-raised py-2 pr-2 pl-4 shadow-xl"
    >
      <span role="status" className="mr-2 text-sm font-medium">
        {countText} selected
      </span>
      <Button look="quiet" onClick={clear}>
        Clear
      </Button>
      <Button look="danger" onClick={() => setIsAsking(true)}>
        Release
      </Button>
      {isAsking && (
        <ConfirmDialog
          title={`Release ${countText}?`}
          action="Release"
          close={() => setIsAsking(false)}
          onConfirm={async () => {
            await releaseAll(app, ids);
            clear();
            await client.invalidateQueries({ queryKey: ['sessions', app] });
          }}
        >
          Their browsers are closed and their clients are disconnected. Stored data of the sessions is kept.
        </ConfirmDialog>
      )}
    </section>
  );
}

/** Releases the sessions. Sessions that have already ended are ignored. */
async function releaseAll(app: string, ids: readonly string[]): Promise<void> {
  const remainingIds = [...ids];
  const releaseRemaining = async (): Promise<void> => {
    for (let id = remainingIds.shift(); id !== undefined; id = remainingIds.shift())
      await call('updateSession', { app, params: { id }, body: { status: 'REQUEST_RELEASE' } }).catch(error => {
        if (!(error instanceof ApiError) || error.code !== 'session_not_running') throw error;
      });
  };
  await Promise.all(Array.from({ length: CONCURRENT_RELEASES_MAX }, releaseRemaining));
}
