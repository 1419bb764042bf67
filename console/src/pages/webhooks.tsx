// Webhooks of an application, and what was delivered to each.
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Webhook } from '../../../contract/webhooks.ts';
import { call } from '../api/call.ts';
import { webhookDeliveriesQuery, webhooksQuery } from '../api/queries.ts';
import { isAtLeast, useRole } from '../api/use-role.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, FormError } from '../ui/states.tsx';
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
  const [doing, setDoing] = useState<OpenDialog | undefined>();
  const [shown, setShown] = useState<string | undefined>();
  const mayWrite = isAtLeast(useRole(app), 'developer');
  const client = useQueryClient();
  const done = async (): Promise<void> => {
    setDoing(undefined);
    await client.invalidateQueries({ queryKey: webhooksQuery(app).queryKey });
  };
  const all = data?.pages.flatMap(page => page.data);
  const open = all?.find(({ id }) => id === shown);
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
          <Button look="primary" icon="plus" onClick={() => setDoing({ create: true })}>
            Create a webhook
          </Button>
        )
      }
    >
      <ListPanel
        what="webhooks"
        items={all}
        error={error}
        retry={refetch}
        empty={
          <Empty icon="webhooks" title="No webhooks">
            Create one to be notified when sessions start and end, instead of polling.
          </Empty>
        }
      >
        {webhook => (
          <WebhookRow
            key={webhook.id}
            app={app}
            webhook={webhook}
            mayWrite={mayWrite}
            isOpen={webhook.id === shown}
            show={() => setShown(webhook.id === shown ? undefined : webhook.id)}
            act={setDoing}
          />
        )}
      </ListPanel>
      <LoadMore list={webhooks} what="Show older webhooks" />
      {open && (
        <section className="mt-8">
          <h2 className="mb-3 text-base font-semibold">Deliveries of {open.name}</h2>
          <WebhookDeliveries
            key={open.id}
            app={app}
            webhookId={open.id}
            mayWrite={mayWrite && open.status === 'enabled'}
          />
        </section>
      )}
      {doing && 'create' in doing && <WebhookForm app={app} done={done} close={() => setDoing(undefined)} />}
      {doing && 'change' in doing && (
        <WebhookForm app={app} webhook={doing.change} done={done} close={() => setDoing(undefined)} />
      )}
      {doing && 'rotate' in doing && (
        <Confirm
          title={`Rotate the key of ${doing.rotate.name}?`}
          action="Rotate"
          close={() => setDoing(undefined)}
          act={async () => {
            await call('rotateWebhookKey', { params: { appId: app, webhookId: doing.rotate.id } });
            await done();
          }}
        >
          For 24 hours messages are signed with both keys. Switch the receiver to the new key within that time.
        </Confirm>
      )}
      {doing && 'remove' in doing && (
        <Confirm
          title={`Delete ${doing.remove.name}?`}
          action="Delete"
          close={() => setDoing(undefined)}
          act={async () => {
            await call('deleteWebhook', { params: { appId: app, webhookId: doing.remove.id } });
            await done();
          }}
        >
          Nothing more is sent. The key and the log of deliveries are deleted too.
        </Confirm>
      )}
    </Page>
  );
}

const PAUSE_REASONS = {
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
  act,
}: {
  readonly app: string;
  readonly webhook: Webhook;
  readonly mayWrite: boolean;
  readonly isOpen: boolean;
  readonly show: () => void;
  readonly act: (dialog: OpenDialog) => void;
}) {
  const client = useQueryClient();
  const { id, name, url, eventTypes, status, disabledReason, disabledAt, failingSince, publicKey } = webhook;
  const isEnabled = status === 'enabled';
  const params = { appId: app, webhookId: id };
  const turn = useMutation({
    mutationFn: () =>
      call('changeWebhook', {
        ...{ params, headers: { 'if-match': `"${webhook.revision}"` } },
        body: { status: isEnabled ? 'disabled' : 'enabled' },
      }),
    onSettled: () => client.invalidateQueries({ queryKey: webhooksQuery(app).queryKey }),
  });
  const test = useMutation({
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
              {PAUSE_REASONS[disabledReason ?? 'caller']}
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
                busy={test.isPending}
                aria-label={`Send a test to ${name}`}
                onClick={() => test.mutate()}
              >
                Send a test
              </Button>
            )}
            <Button look="quiet" aria-label={`Change ${name}`} onClick={() => act({ change: webhook })}>
              Change
            </Button>
            <Button
              look="quiet"
              busy={turn.isPending}
              aria-label={`${isEnabled ? 'Disable' : 'Enable'} ${name}`}
              onClick={() => turn.mutate()}
            >
              {isEnabled ? 'Disable' : 'Enable'}
            </Button>
            <Button look="quiet" aria-label={`Rotate key of ${name}`} onClick={() => act({ rotate: webhook })}>
              Rotate key
            </Button>
            <Button look="quiet" aria-label={`Delete ${name}`} onClick={() => act({ remove: webhook })}>
              Delete
            </Button>
          </>
        )}
      </div>
      <FormError error={turn.error ?? test.error} />
    </li>
  );
}
