// The delivery log of a webhook, with a button to send a delivery again.
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import type { WebhookDelivery } from '../../../contract/webhooks.ts';
import { call } from '../api/call.ts';
import { webhookDeliveriesQuery } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { ListPanel } from '../ui/list-panel.tsx';
import { LoadMore } from '../ui/more.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Ago, TimeText } from '../ui/time.tsx';

export function WebhookDeliveries({
  app,
  webhookId,
  mayWrite,
}: {
  readonly app: string;
  readonly webhookId: string;
  /** Whether deliveries can be sent again. The person must have the right to do so, and the webhook must be enabled. */
  readonly mayWrite: boolean;
}) {
  const deliveries = useInfiniteQuery(webhookDeliveriesQuery(app, webhookId));
  const { data, error, refetch } = deliveries;
  return (
    <>
      <ListPanel
        contentLabel="deliveries"
        items={data?.pages.flatMap(page => page.data)}
        error={error}
        retry={refetch}
        empty={
          <EmptyState icon="outbox" title="No deliveries">
            Events appear here as they happen. Send a test to see one now.
          </EmptyState>
        }
      >
        {delivery => <DeliveryRow key={delivery.id} app={app} delivery={delivery} mayWrite={mayWrite} />}
      </ListPanel>
      <LoadMore list={deliveries} buttonText="Show older deliveries" />
    </>
  );
}

const STATES = {
  waiting: { word: 'Waiting', ink: 'text-warn' },
  delivered: { word: 'Delivered', ink: 'text-good' },
  dead: { word: 'Given up', ink: 'text-bad' },
} as const satisfies Readonly<Record<WebhookDelivery['status'], { word: string; ink: string }>>;

function DeliveryRow({
  app,
  delivery,
  mayWrite,
}: {
  readonly app: string;
  readonly delivery: WebhookDelivery;
  readonly mayWrite: boolean;
}) {
  const client = useQueryClient();
  const { id, webhookId, eventType, status, attempts, createdAt, nextAttemptAt, answerStatus, failure } = delivery;
  const work = useMutation({
    mutationFn: () => call('redeliverWebhookDelivery', { params: { appId: app, webhookId, deliveryId: id } }),
    onSettled: () => client.invalidateQueries({ queryKey: webhookDeliveriesQuery(app, webhookId).queryKey }),
  });
  const { word, ink } = STATES[status];
  return (
    <li className="grid gap-x-6 gap-y-1 px-4 py-3 md:grid-cols-[minmax(0,1fr)_minmax(0,1.2fr)_auto] md:items-center">
      <div className="min-w-0">
        <p className="truncate font-medium">{eventType}</p>
        <p className="flex min-w-0 items-center gap-1">
          <code className="truncate font-mono text-xs text-soft">{id}</code>
          <CopyButton text={id} label={`Copy the id of the delivery of ${eventType}`} />
        </p>
      </div>
      <div className="min-w-0 text-xs leading-relaxed text-soft">
        <p>
          <span className={`font-medium ${ink}`}>{word}</span>
          {answerStatus !== undefined && `, answered ${answerStatus}`}, {attempts}{' '}
          {attempts === 1 ? 'attempt' : 'attempts'}, <Ago time={createdAt} />
        </p>
        {failure && <p className="break-words">{failure}</p>}
        {nextAttemptAt && attempts > 0 && (
          <p>
            Next attempt at <TimeText time={nextAttemptAt} />
          </p>
        )}
        {work.error && (
          <p role="alert" className="text-bad">
            {work.error.message}
          </p>
        )}
      </div>
      <div className="flex max-md:-ml-2 md:w-28 md:justify-end">
        {mayWrite && (
          <Button
            look="quiet"
            busy={work.isPending}
            aria-label={`Send again: ${eventType} ${id}`}
            onClick={() => work.mutate()}
          >
            Send again
          </Button>
        )}
      </div>
    </li>
  );
}
