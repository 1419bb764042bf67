// Extensions. The API has no list of extensions, because programs upload and delete them for every launch. The page
// therefore lists the extensions that were uploaded or looked up in this browser, and finds others by id.
import { useMutation, useQueries } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Extension } from '../../../contract/extensions.ts';
import { ApiError } from '../api/api-error.ts';
import { call } from '../api/call.ts';
import { knownExtensionIds, rememberExtensions } from '../api/known-extensions.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { FileButton } from '../ui/file-button.tsx';
import { Page, Panel } from '../ui/page.tsx';
import { EmptyState, FormError, LoadError } from '../ui/states.tsx';
import { Ago, bytesWords } from '../ui/time.tsx';

export function ExtensionsPage({ app }: { readonly app: string }) {
  const [ids, setIds] = useState(() => knownExtensionIds(app));
  const [extensionToDelete, setExtensionToDelete] = useState<Extension | undefined>();
  const saveIds = (newIds: readonly string[]): void => {
    rememberExtensions(app, newIds);
    setIds(newIds);
  };
  const upload = useMutation({
    mutationFn: (form: FormData) => call('uploadExtension', { app, form }),
    onSuccess: ({ id }) => saveIds([id, ...ids.filter(one => one !== id)]),
  });
  const extensionQueries = useQueries({
    queries: ids.map(id => ({
      queryKey: ['extension', app, id],
      queryFn: () => call('readExtension', { app, params: { id } }),
      retry: false,
    })),
  });
  return (
    <Page
      title="Extensions"
      about="Browser extensions. Those that are named when a session is created are loaded before the first client connects."
      actions={
        <FileButton label="Upload zip or crx" accept=".zip,.crx" busy={upload.isPending} onFile={upload.mutate} />
      }
    >
      {upload.error && (
        <div className="mb-3">
          <FormError error={upload.error} />
        </div>
      )}
      <FindExtension add={id => saveIds([id, ...ids.filter(one => one !== id)])} />
      <Panel>
        {ids.length === 0 ? (
          <EmptyState icon="extensions" title="No extensions remembered by this browser">
            The service has no list of extensions. This browser remembers the extensions that you upload here. To see
            another one, enter its id.
          </EmptyState>
        ) : (
          <ul className="divide-y divide-line">
            {extensionQueries.map(({ data, error }, at) => {
              const id = ids[at] ?? '';
              const forget = (): void => saveIds(ids.filter(one => one !== id));
              if (data) return <Row key={id} extension={data} remove={() => setExtensionToDelete(data)} />;
              if (error) return <UnavailableExtension key={id} id={id} error={error} forget={forget} />;
              return <li key={id} className="h-14" />;
            })}
          </ul>
        )}
      </Panel>
      {extensionToDelete && (
        <ConfirmDialog
          title={`Delete ${extensionToDelete.name}?`}
          action="Delete"
          close={() => setExtensionToDelete(undefined)}
          onConfirm={async () => {
            await call('deleteExtension', { app, params: { id: extensionToDelete.id } });
            saveIds(ids.filter(one => one !== extensionToDelete.id));
          }}
        >
          Running sessions keep their copy. New sessions that name the extension are refused.
        </ConfirmDialog>
      )}
    </Page>
  );
}

function FindExtension({ add }: { readonly add: (id: string) => void }) {
  const [id, setId] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (id.trim() === '') return;
    add(id.trim());
    setId('');
  };
  return (
    <form onSubmit={submit} className="mb-3 flex max-w-md gap-2">
      <input
        aria-label="Id of an extension"
        placeholder="Id of an extension"
        value={id}
        onChange={event => setId(event.target.value)}
        className="h-9 min-w-0 grow rounded-md border border-line-strong bg-raised px-2.5 font-mono text-xs md:h-8"
      />
      <Button type="submit">Show</Button>
    </form>
  );
}

const Row = ({
  extension: { id, name, version, fileName, size, createdAt },
  remove,
}: {
  readonly extension: Extension;
  readonly remove: () => void;
}) => (
  <li className="flex flex-wrap items-center gap-x-6 gap-y-1 px-4 py-2.5">
    <span className="min-w-0 grow basis-52">
      <span className="block truncate font-medium">
        {name} <span className="font-normal text-soft">{version}</span>
      </span>
      <span className="block truncate text-xs text-soft">
        {fileName}, {bytesWords(size)}, <Ago time={createdAt} />
      </span>
    </span>
    <span className="flex min-w-0 items-center gap-1">
      <code className="truncate font-mono text-xs text-soft">{id}</code>
      <CopyButton text={id} label={`Copy the id of ${name}`} />
    </span>
    <Button look="quiet" onClick={remove} aria-label={`Delete ${name}`} className="-ml-2">
      Delete
    </Button>
  </li>
);

/** An extension that was deleted elsewhere stays listed until the user removes it. Other errors may be temporary. */
const UnavailableExtension = ({
  id,
  error,
  forget,
}: {
  readonly id: string;
  readonly error: unknown;
  readonly forget: () => void;
}) =>
  error instanceof ApiError && [400, 404].includes(error.status) ? (
    <li className="flex flex-wrap items-center gap-x-6 gap-y-1 px-4 py-2.5 text-soft">
      <span className="grow text-sm">This extension does not exist in this application.</span>
      <code className="truncate font-mono text-xs">{id}</code>
      <Button look="quiet" onClick={forget} className="-ml-2">
        Forget
      </Button>
    </li>
  ) : (
    <li>
      <LoadError error={error} />
    </li>
  );
