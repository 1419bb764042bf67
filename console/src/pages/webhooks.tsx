// Webhooks of an application, and the deliveries of each.
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Webhook } from '../../../contract/webhooks.ts';
import { call } from '../api/call.ts';
import { webhookDeliveriesQuery, webhooksQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { EmptyState, FormError } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { WebhookDeliveries } from './webhook-deliveries.tsx';
import { WebhookForm } from './webhook-form.tsx';

type OpenDialog =
  | { readonly create: true }
  | { readonly change: Webhook }
  | { readonly rotate: Webhook }
  | { readonly remove: Webhook };

export function WebhooksPage({ app }: { readonly app: string }) {
  const webhooks = useInfiniteQuery(webhooksQuery(app));
  const { data, error, refetch } = webhooks;
  const [openDialog, setOpenDialog] = useState<OpenDialog | undefined>();
  const [shownId, setShownId] = useState<string | undefined>();
  const mayWrite = isAtLeast(useRole(app), 'developer');
  const client = useQueryClient();
  const onDone = async (): Promise<void> => {
    setOpenDialog(undefined);
    await client.invalidateQueries({ queryKey: webhooksQuery(app).queryKey });
  };
  const allWebhooks = data?.pages.flatMap(page => page.data);
  const shownWebhook = allWebhooks?.find(({ id }) => id === shownId);
  return (
    <Page
      title="Webhooks"
      about={
        <>
          Addresses that receive the events of this application. Each has its own signing key.{' '}
          <a href="/docs/webhooks" className="text-accent underline">
            How to verify a message
          </a>
        </>
      }
      actions={
        mayWrite && (
          <Button look="primary" icon="plus" onClick={() => setOpenDialog({ create: true })}>
            Create a webhook
          </Button>
        )
      }
    >
      <ListPanel
        contentLabel="webhooks"
        items={allWebhooks}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="webhooks" title="No webhooks">
            Create one to be notified when sessions start and end, instead of polling.
          </EmptyState>
        }
      >
        {webhook => (
          <WebhookRow
            key={webhook.id}
            app={app}
            webhook={webhook}
            mayWrite={mayWrite}
            isOpen={webhook.id === shownId}
            show={() => setShownId(webhook.id === shownId ? undefined : webhook.id)}
            onAction={setOpenDialog}
          />
        )}
      </ListPanel>
      <LoadMore list={webhooks} buttonText="Show older webhooks" />
      {shownWebhook && (
        <section className="mt-8">
          <h2 className="mb-3 text-base font-semibold">Deliveries of {shownWebhook.name}</h2>
          <WebhookDeliveries
            key={shownWebhook.id}
            app={app}
            webhookId={shownWebhook.id}
            mayWrite={mayWrite && shownWebhook.status === 'enabled'}
          />
        </section>
      )}
      {openDialog && 'create' in openDialog && (
        <WebhookForm app={app} onFinished={onDone} close={() => setOpenDialog(undefined)} />
      )}
      {openDialog && 'change' in openDialog && (
        <WebhookForm app={app} webhook={openDialog.change} onFinished={onDone} close={() => setOpenDialog(undefined)} />
      )}
      {openDialog && 'rotate' in openDialog && (
        <ConfirmDialog
          title={`Rotate the key of ${openDialog.rotate.name}?`}
          action="Rotate"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('rotateWebhookKey', { params: { appId: app, webhookId: openDialog.rotate.id } });
            await onDone();
          }}
        >
          For 24 hours messages are signed with both keys. Switch the receiver to the new key within that time.
        </ConfirmDialog>
      )}
      {openDialog && 'remove' in openDialog && (
        <ConfirmDialog
          title={`Delete ${openDialog.remove.name}?`}
          action="Delete"
          close={() => setOpenDialog(undefined)}
          onConfirm={async () => {
            await call('deleteWebhook', { params: { appId: app, webhookId: openDialog.remove.id } });
            await onDone();
          }}
        >
          Nothing more is sent. The key and the log of deliveries are deleted too.
        </ConfirmDialog>
      )}
    </Page>
  );
}

const DISABLED_REASONS = {
  caller: 'Disabled',
  failing: 'Disabled: every attempt failed for three days',
  gone: 'Disabled: the address returned 410',
} as const;

function WebhookRow({
  app,
  webhook,
  mayWrite,
  isOpen,
  show,
  onAction,
}: {
  readonly app: string;
  readonly webhook: Webhook;
  readonly mayWrite: boolean;
  readonly isOpen: boolean;
  readonly show: () => void;
  readonly onAction: (dialog: OpenDialog) => void;
}) {
  const client = useQueryClient();
  const { id, name, url, eventTypes, status, disabledReason, disabledAt, failingSince, publicKey } = webhook;
  const isEnabled = status === 'enabled';
  const params = { appId: app, webhookId: id };
  const toggleEnabled = useMutation({
    mutationFn: () =>
      call('changeWebhook', {
        ...{ params, headers: { 'if-match': `"${webhook.revision}"` } },
        body: { status: isEnabled ? 'disabled' : 'enabled' },
      }),
    onSettled: () => client.invalidateQueries({ queryKey: webhooksQuery(app).queryKey }),
  });
  const sendTest = useMutation({
    mutationFn: () => call('testWebhook', { params }),
    onSuccess: async () => {
      if (!isOpen) show();
      await client.invalidateQueries({ queryKey: webhookDeliveriesQuery(app, id).queryKey });
    },
  });
  return (
    <li className="grid gap-3 px-4 py-3">
      <div className="grid gap-x-6 gap-y-1 md:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
        <div className="min-w-0">
          <p className={`truncate font-medium ${isEnabled ? '' : 'text-soft'}`}>{name}</p>
          <p className="text-sm break-all text-soft">{url}</p>
        </div>
        <div className="min-w-0 text-xs leading-relaxed text-soft">
          <p className="break-words">{eventTypes.length === 0 ? 'All events' : eventTypes.join(', ')}</p>
          <p className="flex min-w-0 items-center gap-1">
            <code className="truncate font-mono">{publicKey}</code>
            <CopyButton text={publicKey} label={`Copy the public key of ${name}`} />
          </p>
          {!isEnabled && (
            <p className="text-warn">
              {DISABLED_REASONS[disabledReason ?? 'caller']}
              {disabledAt && (
                <>
                  , <Ago time={disabledAt} />
                </>
              )}
            </p>
          )}
          {isEnabled && failingSince && (
            <p className="text-bad">
              Failing since <Ago time={failingSince} />
            </p>
          )}
        </div>
      </div>
      <div className="-ml-2 flex flex-wrap gap-1">
        <Button look="quiet" aria-label={`Deliveries of ${name}`} aria-expanded={isOpen} onClick={show}>
          Deliveries
        </Button>
        {mayWrite && (
          <>
            {isEnabled && (
              <Button
                look="quiet"
                busy={sendTest.isPending}
                aria-label={`Send a test to ${name}`}
                onClick={() => sendTest.mutate()}
              >
                Send a test
              </Button>
            )}
            <Button look="quiet" aria-label={`Change ${name}`} onClick={() => onAction({ change: webhook })}>
              Change
            </Button>
            <Button
              look="quiet"
              busy={toggleEnabled.isPending}
              aria-label={`${isEnabled ? 'Disable' : 'Enable'} ${name}`}
              onClick={() => toggleEnabled.mutate()}
            >
              {isEnabled ? 'Disable' : 'Enable'}
            </Button>
            <Button look="quiet" aria-label={`Rotate key of ${name}`} onClick={() => onAction({ rotate: webhook })}>
              Rotate key
            </Button>
            <Button look="quiet" aria-label={`Delete ${name}`} onClick={() => onAction({ remove: webhook })}>
              Delete
            </Button>
          </>
        )}
      </div>
      <FormError error={toggleEnabled.error ?? sendTest.error} />
    </li>
  );
}
