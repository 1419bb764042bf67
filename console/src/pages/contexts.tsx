// Contexts of an application, and their versions.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Context } from '../../../contract/contexts.ts';
import { call } from '../api/call.ts';
import { contextsQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/form.tsx';
import { FormDialog } from '../ui/form-dialog.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState, FormError } from '../ui/states.tsx';
import { Ago, bytesWords } from '../ui/time.tsx';

type OpenDialog = 'create' | { readonly versions: Context } | { readonly remove: Context };

export function ContextsPage({ app }: { readonly app: string }) {
  const { data, error, refetch } = useQuery(contextsQuery(app));
  const [openDialog, setOpenDialog] = useState<OpenDialog | undefined>();
  const client = useQueryClient();
  const close = (): void => setOpenDialog(undefined);
  const refresh = () => client.invalidateQueries({ queryKey: contextsQuery(app).queryKey });
  return (
    <Page
      title="Contexts"
      about="Stored cookies and storage. Sessions can start from a context and save back to it."
      actions={
        <Button look="primary" icon="plus" onClick={() => setOpenDialog('create')}>
          New context
        </Button>
      }
    >
      <ListPanel
        contentLabel="contexts"
        items={data}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="contexts" title="No contexts yet">
            Sign in to a site once in a session that saves to a context. Later sessions with this context are already
            signed in.
          </EmptyState>
        }
      >
        {context => (
          <Row
            key={context.id}
            context={context}
            versions={() => setOpenDialog({ versions: context })}
            remove={() => setOpenDialog({ remove: context })}
          />
        )}
      </ListPanel>
      {openDialog === 'create' && <CreateDialog app={app} close={close} onFinished={refresh} />}
      {typeof openDialog === 'object' && 'versions' in openDialog && (
        <VersionsDialog app={app} context={openDialog.versions} close={close} onFinished={refresh} />
      )}
      {typeof openDialog === 'object' && 'remove' in openDialog && (
        <ConfirmDialog
          title={`Delete ${nameOf(openDialog.remove)}?`}
          action="Delete"
          close={close}
          onConfirm={async () => {
            await call('deleteContext', { app, params: { id: openDialog.remove.id } });
            await refresh();
          }}
        >
          The encryption key of the context is destroyed, and with it every version. This cannot be undone.
        </ConfirmDialog>
      )}
    </Page>
  );
}

const nameOf = ({ name, id }: Context): string => name ?? `context ${id.slice(-8)}`;

const Row = ({
  context,
  versions,
  remove,
}: {
  readonly context: Context;
  readonly versions: () => void;
  readonly remove: () => void;
}) => (
  <li className="flex flex-wrap items-center gap-x-6 gap-y-1 px-4 py-2.5">
    <span className="min-w-0 grow basis-44 truncate font-medium">{nameOf(context)}</span>
    <span className="flex min-w-0 items-center gap-1">
      <code className="truncate font-mono text-xs text-soft">{context.id}</code>
      <CopyButton text={context.id} label={`Copy the id of ${nameOf(context)}`} />
    </span>
    <span className="w-44 text-sm text-soft">
      {context.version === 0 ? 'empty' : `version ${context.version}, ${bytesWords(context.sizeBytes)}`}
    </span>
    <span className="w-20 text-sm text-soft">
      <Ago time={context.updatedAt} />
    </span>
    <span className="-ml-2 flex">
      <Button
        look="quiet"
        onClick={versions}
        disabled={context.version === 0}
        aria-label={`Versions of ${nameOf(context)}`}
      >
        Versions
      </Button>
      <Button look="quiet" onClick={remove} aria-label={`Delete ${nameOf(context)}`}>
        Delete
      </Button>
    </span>
  </li>
);

function CreateDialog({
  app,
  close,
  onFinished,
}: {
  readonly app: string;
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const [name, setName] = useState('');
  const create = useMutation({
    mutationFn: () => call('createContext', { app, body: name.trim() ? { name: name.trim() } : {} }),
    onSuccess: async () => {
      await onFinished();
      close();
    },
  });
  return (
    <FormDialog title="New context" action="Create" work={create} close={close}>
      <TextField
        label="Name"
        hint="Optional. Must be unique within the application."
        placeholder="shop-login"
        maxLength={128}
        value={name}
        onChange={event => setName(event.target.value)}
      />
    </FormDialog>
  );
}

function VersionsDialog({
  app,
  context,
  close,
  onFinished,
}: {
  readonly app: string;
  readonly context: Context;
  readonly close: () => void;
  readonly onFinished: () => Promise<void>;
}) {
  const params = { id: context.id };
  const { data, error, refetch } = useQuery({
    queryKey: ['versions', app, context.id],
    queryFn: ({ signal }) => call('listContextVersions', { app, params, signal }),
  });
  const restore = useMutation({
    mutationFn: (version: number) => call('restoreContext', { app, params, body: { version } }),
    onSuccess: async () => {
      await refetch();
      await onFinished();
    },
  });
  return (
    <Dialog
      open
      onClose={close}
      title={`Versions of ${nameOf(context)}`}
      about="Up to five earlier versions are kept for seven days."
    >
      <FormError error={error ?? restore.error} />
      <ul className="-mx-5 divide-y divide-line border-t border-line">
        {(data ?? []).map(({ version, createdAt, source, partial, sizeBytes, current }) => (
          <li key={version} className="flex items-center gap-3 px-5 py-2">
            <span className="min-w-0 grow">
              <span className="font-medium">Version {version}</span>
              <span className="block text-xs text-soft">
                {source}
                {partial ? ', partial' : ''}, {bytesWords(sizeBytes)}, <Ago time={createdAt} />
              </span>
            </span>
            {current ? (
              <span className="text-sm text-soft">newest</span>
            ) : (
              <Button
                busy={restore.isPending}
                onClick={() => restore.mutate(version)}
                aria-label={`Restore version ${version}`}
              >
                Restore
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
