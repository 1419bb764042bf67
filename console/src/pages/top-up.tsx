// Shows what a person needs to buy credit: the packs that the operator sells, the orders that are waiting for payment,
// and the outcome of earlier orders.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { Checkout, Quote } from '../../../contract/topups.ts';
import { call } from '../api/call.ts';
import { isPerson } from '../api/credentials.ts';
import { checkoutsQuery, quoteQuery } from '../api/queries.ts';
import { randomId } from '../api/random-id.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { LoadMore } from '../ui/more.tsx';
import { Panel } from '../ui/page.tsx';
import { FormError, LoadError, LoadingRows } from '../ui/states.tsx';
import { Ago, TimeText } from '../ui/time.tsx';
import { CHECKOUT_WORDS, moneyWords } from './credit-words.ts';

type Pack = Quote['packs'][number];

export function TopUp({ app, isOwner }: { readonly app: string; readonly isOwner: boolean }) {
  const { data, error, refetch } = useQuery(quoteQuery(app));
  const [pack, setPack] = useState<Pack | undefined>();
  const mayOrder = isOwner && isPerson();
  return (
    <>
      <Panel title="Add credit">
        {!data ? (
          error ? (
            <LoadError error={error} retry={() => void refetch()} />
          ) : (
            <LoadingRows contentLabel="prices" rows={2} />
          )
        ) : !data.available ? (
          <p className="p-4 text-sm text-soft">
            This installation does not sell credit. The operator can give some with{' '}
            <code className="font-mono text-xs">berth credits grant</code>.
          </p>
        ) : (
          <>
            <ul className="divide-y divide-line">
              {data.packs.map(one => (
                <li key={one.id} className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 px-4 py-3">
                  <span>
                    <span className="font-medium">{one.credits} credits</span>
                    {one.bonus > 0 && <span className="text-good"> plus {one.bonus} bonus credits</span>}
                  </span>
                  <span className="flex items-center gap-4">
                    <span className="tabular-nums">{moneyWords(one.price)}</span>
                    {mayOrder && (
                      <Button aria-label={`Order ${one.credits} credits`} onClick={() => setPack(one)}>
                        Order
                      </Button>
                    )}
                  </span>
                </li>
              ))}
            </ul>
            {!mayOrder && (
              <p className="border-t border-line px-4 py-3 text-sm text-soft">
                {isOwner
                  ? 'Sign in with your account to order. A token cannot place orders.'
                  : 'Only an owner of the application can order.'}
              </p>
            )}
          </>
        )}
      </Panel>
      {isOwner && <Orders app={app} />}
      {pack && data && <OrderDialog app={app} pack={pack} quoteId={data.quoteId} close={() => setPack(undefined)} />}
    </>
  );
}

function OrderDialog({
  app,
  pack,
  quoteId,
  close,
}: {
  readonly app: string;
  readonly pack: Pack;
  readonly quoteId: string;
  readonly close: () => void;
}) {
  const client = useQueryClient();
  /** The idempotency key: if the request is sent again, no second order is created. */
  const key = useRef(randomId());
  return (
    <ConfirmDialog
      title={`Order ${pack.credits} credits for ${moneyWords(pack.price)}?`}
      action="Order"
      close={close}
      onConfirm={async () => {
        try {
          await call('openCheckout', {
            headers: { 'idempotency-key': key.current },
            body: { applicationId: app, packId: pack.id, quoteId },
          });
        } finally {
          await client.invalidateQueries({ queryKey: ['top-ups', app] });
        }
      }}
    >
      You will then see how to pay, and the reference to give with the payment. The credit is added when the operator
      has confirmed the payment.
    </ConfirmDialog>
  );
}

function Orders({ app }: { readonly app: string }) {
  const list = useInfiniteQuery(checkoutsQuery(app));
  const { data, error, refetch } = list;
  const orders = data?.pages.flatMap(page => page.data) ?? [];
  if (error) return <LoadError error={error} retry={() => void refetch()} />;
  if (orders.length === 0) return null;
  return (
    <div>
      <Panel title="Orders">
        <ul className="divide-y divide-line">
          {orders.map(order => (
            <OrderRow key={order.id} app={app} order={order} />
          ))}
        </ul>
      </Panel>
      <LoadMore list={list} buttonText="Show older orders" />
    </div>
  );
}

function OrderRow({ app, order }: { readonly app: string; readonly order: Checkout }) {
  const { id, status, credits, bonus, price, reference, paymentText, createdAt, expiresAt, endedAt } = order;
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => call('cancelCheckout', { params: { id } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['top-ups', app] }),
  });
  return (
    <li className="grid gap-2 px-4 py-3 text-sm">
      <div className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1">
        <p className="font-medium">
          {credits + bonus} credits for {moneyWords(price)}
        </p>
        <p className={status === 'credited' ? 'text-good' : status === 'open' ? 'text-warn' : 'text-soft'}>
          <span>{CHECKOUT_WORDS[status]}</span>
          <span className="ml-2 text-xs text-soft">
            <Ago time={endedAt ?? createdAt} />
          </span>
        </p>
      </div>
      {status === 'open' && (
        <>
          {paymentText && <p className="break-words whitespace-pre-line">{paymentText}</p>}
          <p className="flex flex-wrap items-center gap-1 text-soft">
            Reference <code className="font-mono text-ink">{reference}</code>
            <CopyButton text={reference} label={`Copy the reference ${reference}`} />
            <span className="text-xs">
              Until <TimeText time={expiresAt} />
            </span>
          </p>
          {isPerson() && (
            <div className="-ml-2">
              <Button
                look="quiet"
                busy={cancel.isPending}
                aria-label={`Cancel the order ${reference}`}
                onClick={() => cancel.mutate()}
              >
                Cancel the order
              </Button>
            </div>
          )}
          <FormError error={cancel.error} />
        </>
      )}
    </li>
  );
}
