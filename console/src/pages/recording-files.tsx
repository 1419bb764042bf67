// Recorded pages as MP4 files. Each file is assembled on request.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from '../api/call.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { FormError } from '../ui/states.tsx';
import { bytesWords } from '../ui/time.tsx';

const POLL_INTERVAL_MS = 2_000;

export function RecordingFiles({ app, id }: { readonly app: string; readonly id: string }) {
  const queryKey = ['recordings', app, id];
  const { data } = useQuery({
    queryKey,
    queryFn: ({ signal }) => call('listRecordings', { app, params: { id }, signal }),
    retry: false,
    refetchInterval: ({ state }) =>
      state.data?.downloads.some(({ status }) => status === 'PENDING') ? POLL_INTERVAL_MS : false,
  });
  const client = useQueryClient();
  const requestFiles = useMutation({
    mutationFn: () => call('requestRecordings', { app, params: { id } }),
    onSuccess: () => client.invalidateQueries({ queryKey }),
  });
  if (!data) return null;
  const canRequest = data.downloads.some(({ status }) => status === 'NOT_REQUESTED' || status === 'FAILED');
  return (
    <section aria-label="MP4 files" className="flex flex-wrap items-center gap-2 border-t border-line px-4 py-3">
      {data.downloads.map(({ pageId, status, downloadUrl, size }) =>
        downloadUrl ? (
          <a key={pageId} href={downloadUrl} download className={buttonClass('plain')}>
            <Icon name="download" size={16} />
            Page {pageId} as MP4
            {size !== undefined && <span className="font-normal text-soft">{bytesWords(size)}</span>}
          </a>
        ) : (
          status !== 'NOT_REQUESTED' && (
            <span key={pageId} role="status" className="text-sm text-soft">
              Page {pageId}: {status === 'PENDING' ? 'in progress' : 'failed'}
            </span>
          )
        ),
      )}
      {canRequest && (
        <Button busy={requestFiles.isPending} onClick={() => requestFiles.mutate()}>
          Create MP4 files
        </Button>
      )}
      <FormError error={requestFiles.error} />
    </section>
  );
}
