// Downloads and uploads of a session.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ChangeEvent, type ReactNode, useRef, useState } from 'react';
import type { Download } from '../../../contract/files.ts';
import type { Session } from '../../../contract/sessions.ts';
import { call } from '../api/call.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { Icon } from '../ui/icon.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { Ago, bytesWords } from '../ui/time.tsx';

const DOWNLOADS_MAX = 100;
/** The interval at which links are renewed, well before they expire. */
const LINK_RENEWAL_INTERVAL_MS = 3_600_000;

export function FilesTab({
  app,
  session,
  isOpen,
}: {
  readonly app: string;
  readonly session: Session;
  readonly isOpen: boolean;
}) {
  const queryKey = ['downloads', app, session.id];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) =>
      call('listDownloads', { app, query: { sessionId: session.id, limit: DOWNLOADS_MAX }, signal }),
    refetchInterval: isOpen ? 2_000 : LINK_RENEWAL_INTERVAL_MS,
  });
  const [downloadToDelete, setDownloadToDelete] = useState<Download | undefined>();
  const client = useQueryClient();
  return (
    <>
      <Heading name="Downloads" />
      {error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : !data ? (
        <LoadingRows contentLabel="downloads" rows={2} />
      ) : data.downloads.length === 0 ? (
        <EmptyNote>No downloads.</EmptyNote>
      ) : (
        <ul className="divide-y divide-line">
          {data.downloads.map(one => (
            <li key={one.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
              <span className="min-w-0 grow basis-48">
                <span className="block truncate font-medium">{one.filename}</span>
                <span className="block truncate text-xs text-soft">
                  {one.mimeType}, {bytesWords(one.size)}, <Ago time={one.createdAt} />
                </span>
              </span>
              <a href={one.downloadUrl} download={one.filename} className={buttonClass('plain')}>
                <Icon name="download" size={16} />
                Save
                <span className="sr-only"> {one.filename}</span>
              </a>
              <Button look="quiet" aria-label={`Delete ${one.filename}`} onClick={() => setDownloadToDelete(one)}>
                Delete
              </Button>
            </li>
          ))}
        </ul>
      )}
      <Uploads app={app} session={session} isOpen={isOpen} />
      {downloadToDelete && (
        <ConfirmDialog
          title={`Delete ${downloadToDelete.filename}?`}
          action="Delete"
          close={() => setDownloadToDelete(undefined)}
          onConfirm={async () => {
            await call('deleteDownload', { app, params: { id: downloadToDelete.id } });
            await client.invalidateQueries({ queryKey });
          }}
        >
          The file is deleted and links to it stop working. This cannot be undone.
        </ConfirmDialog>
      )}
    </>
  );
}

function Uploads({
  app,
  session,
  isOpen,
}: {
  readonly app: string;
  readonly session: Session;
  readonly isOpen: boolean;
}) {
  const fileInput = useRef<HTMLInputElement>(null);
  const client = useQueryClient();
  const upload = useMutation({
    mutationFn: (file: File) => {
      const form = new FormData();
      form.append('file', file);
      return call('uploadFile', { app, params: { id: session.id }, form });
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['session', app, session.id] }),
  });
  const onFileChosen = (event: ChangeEvent<HTMLInputElement>): void => {
    const file = event.target.files?.[0];
    if (file) upload.mutate(file);
    event.target.value = '';
  };
  const uploads = session.uploads ?? [];
  return (
    <>
      <Heading name="Uploads">
        {isOpen && (
          <Button icon="plus" busy={upload.isPending} onClick={() => fileInput.current?.click()}>
            Upload a file
          </Button>
        )}
      </Heading>
      <input ref={fileInput} type="file" aria-label="File to upload" className="hidden" onChange={onFileChosen} />
      <FormError error={upload.error} />
      {uploads.length === 0 ? (
        <EmptyNote>No uploads.</EmptyNote>
      ) : (
        <ul className="divide-y divide-line">
          {uploads.map(({ fileName, size, createdAt }) => (
            <li key={fileName} className="px-4 py-2">
              <span className="block truncate font-medium">{fileName}</span>
              <span className="block truncate text-xs text-soft">
                <code className="font-mono">/tmp/.uploads/{fileName}</code>, {bytesWords(size)},{' '}
                <Ago time={createdAt} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const Heading = ({ name, children }: { readonly name: string; readonly children?: ReactNode }) => (
  <div className="flex min-h-11 items-center justify-between gap-3 border-b border-line bg-sunk px-4 py-1.5 not-first:border-t">
    <h2 className="text-sm font-semibold">{name}</h2>
    {children}
  </div>
);

const EmptyNote = ({ children }: { readonly children: string }) => <p className="px-4 py-5 text-soft">{children}</p>;
