// Credentials for other services: what is stored, where it may be sent, and who uses it. Values can be written, but are
// never shown.
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { StoredCredential } from '../../../contract/stored-credentials.ts';
import { call } from '../api/call.ts';
import { storedCredentialsQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CheckField } from '../ui/form.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago, TimeText, useNow } from '../ui/time.tsx';
import { StoredCredentialForm } from './stored-credential-form.tsx';
import { CREDENTIAL_TYPES, hasOrigins } from './stored-credential-types.ts';

type OpenDialog =
  | { readonly add: true }
  | { readonly rotate: StoredCredential }
  | { readonly rollBack: StoredCredential }
  | { readonly remove: StoredCredential };

export function StoredCredentialsPage({ app }: { readonly app: string }) {
  const list = useInfiniteQuery(storedCredentialsQuery(app));
  const { data, error, refetch } = list;
  const [openDialog, setOpenDialog] = useState<OpenDialog | undefined>();
  const role = useRole(app);
  const mayWrite = isAtLeast(role, 'developer');
  const client = useQueryClient();
  const close = (): void => setOpenDialog(undefined);
  const onDone = async (): Promise<void> => {
    close();
    await client.invalidateQueries({ queryKey: storedCredentialsQuery(app).queryKey });
  };
  const addButton = (
    <Button look="primary" icon="plus" onClick={() => setOpenDialog({ add: true })}>
      Add a credential
    </Button>
  );
  return (
    <Page
      title="Credentials"
      about={
        <>
          Keys and passwords of other services. Operations use them, agents never see them, and nobody can read them
          back.{' '}
          <a href="/docs/credentials" className="text-accent underline">
            How credentials are kept
          </a>
        </>
      }
      actions={mayWrite && addButton}
    >
      <ListPanel
        contentLabel="credentials"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="credentials" title="No credentials">
            Add the key of a service here, then name it in an operation that calls the service.
          </EmptyState>
        }
      >
        {credential => (
          <Row
            key={credential.id}
            app={app}
            credential={credential}
            mayWrite={mayWrite}
            mayRemove={isAtLeast(role, 'admin')}
            onAction={setOpenDialog}
          />
        )}
      </ListPanel>
      <LoadMore list={list} buttonText="Show more credentials" />
      {openDialog && 'add' in openDialog && <StoredCredentialForm app={app} onFinished={onDone} close={close} />}
      {openDialog && 'rotate' in openDialog && (
        <StoredCredentialForm app={app} credential={openDialog.rotate} onFinished={onDone} close={close} />
      )}
      {openDialog && 'rollBack' in openDialog && (
        <ConfirmDialog
          title={`Restore the previous value of ${openDialog.rollBack.id}?`}
          action="Restore"
          close={close}
          onConfirm={async () => {
            await call('rollBackStoredCredential', { params: { appId: app, id: openDialog.rollBack.id } });
            await onDone();
          }}
        >
          New calls use the previous value at once, at the places that it was written for. The current value can then be
          restored in the same way for 24 hours.
        </ConfirmDialog>
      )}
      {openDialog && 'remove' in openDialog && (
        <DeleteDialog app={app} credential={openDialog.remove} onFinished={onDone} close={close} />
      )}
    </Page>
  );
}

function Row({
  app,
  credential,
  mayWrite,
  mayRemove,
  onAction,
}: {
  readonly app: string;
  readonly credential: StoredCredential;
  readonly mayWrite: boolean;
  readonly mayRemove: boolean;
  readonly onAction: (dialog: OpenDialog) => void;
}) {
  const now = useNow();
  const { id, type, label, fingerprint, hosts, origins, usedBy, lastUsedAt, rotatedAt, version } = credential;
  const { expiresAt, rollbackUntil } = credential;
  const destinations = hasOrigins(type) ? origins : hosts;
  const isExpired = expiresAt !== undefined && Date.parse(expiresAt) <= now;
  const canRollBack = rollbackUntil !== undefined && Date.parse(rollbackUntil) > now;
  return (
    <li className="grid gap-x-6 gap-y-2 px-4 py-3 @min-[720px]:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_minmax(0,1fr)]">
      <div className="min-w-0">
        <p className="font-medium break-words">{id}</p>
        <p className="text-sm break-words text-soft">
          {CREDENTIAL_TYPES[type].name}
          {label && `, ${label}`}
        </p>
        <p
          className="mt-0.5 truncate text-xs text-soft"
          title={`${fingerprint}\nEqual values have the same fingerprint.`}
        >
          Fingerprint <code className="font-mono">{fingerprint.replace(/^hmac:/, '').slice(0, 12)}</code>
        </p>
      </div>
      <dl className="min-w-0 text-sm">
        <dt className="text-xs text-soft">{hasOrigins(type) ? 'May be typed at' : 'May be sent to'}</dt>
        <dd className="break-words">{destinations.join(', ')}</dd>
        <dt className="mt-1 text-xs text-soft">Used by</dt>
        <dd className="break-words">
          {usedBy.length === 0 ? <span className="text-soft">no operation</span> : <UsedBy {...{ app, usedBy }} />}
        </dd>
      </dl>
      <div className="text-xs leading-relaxed text-soft">
        <p>
          {version > 1 ? `Version ${version}, written` : 'Written'} <Ago time={rotatedAt} />
        </p>
        <p>{lastUsedAt ? <>Used {<Ago time={lastUsedAt} />}</> : 'Never used'}</p>
        {expiresAt && (
          <p className={isExpired ? 'font-medium text-bad' : ''}>
            {isExpired ? 'Expired; operations do not use it: ' : 'Expires '}
            <TimeText time={expiresAt} />
          </p>
        )}
        {canRollBack && (
          <p>
            Previous value kept until <TimeText time={rollbackUntil} />
          </p>
        )}
      </div>
      {mayWrite && (
        <div className="-ml-2 flex flex-wrap gap-1 @min-[720px]:col-span-3">
          <Button look="quiet" aria-label={`Rotate ${id}`} onClick={() => onAction({ rotate: credential })}>
            Rotate
          </Button>
          {mayRemove && canRollBack && (
            <Button
              look="quiet"
              aria-label={`Restore the previous value of ${id}`}
              onClick={() => onAction({ rollBack: credential })}
            >
              Restore previous value
            </Button>
          )}
          {mayRemove && (
            <Button look="quiet" aria-label={`Delete ${id}`} onClick={() => onAction({ remove: credential })}>
              Delete
            </Button>
          )}
        </div>
      )}
    </li>
  );
}

const UsedBy = ({ app, usedBy }: { readonly app: string; readonly usedBy: readonly string[] }) =>
  usedBy.map((operation, at) => (
    <span key={operation}>
      {at > 0 && ', '}
      <Link
        to="/a/$app/invocations"
        params={{ app }}
        search={{ operation }}
        className="underline decoration-line-strong underline-offset-2 hover:text-accent"
      >
        {operation}
      </Link>
    </span>
  ));

function DeleteDialog({
  app,
  credential: { id, revision, usedBy },
  onFinished,
  close,
}: {
  readonly app: string;
  readonly credential: StoredCredential;
  readonly onFinished: () => Promise<void>;
  readonly close: () => void;
}) {
  const [force, setForce] = useState(false);
  return (
    <ConfirmDialog
      title={`Delete ${id}?`}
      action="Delete"
      close={close}
      onConfirm={async () => {
        await call('deleteStoredCredential', {
          params: { appId: app, id },
          query: force ? { force: 'true' } : {},
          headers: { 'if-match': `"${revision}"` },
        });
        await onFinished();
      }}
    >
      The value and its earlier versions are destroyed. This cannot be undone.
      {usedBy.length > 0 && (
        <CheckField
          className="mt-4"
          label="Delete it even though operations use it"
          hint={`Calls of ${usedBy.join(', ')} will then be refused.`}
          checked={force}
          onChange={event => setForce(event.target.checked)}
        />
      )}
    </ConfirmDialog>
  );
}
