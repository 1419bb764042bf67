// The operations for buying credit, and the operation that reads the public catalog.
import { ApplicationParams } from '../applications.ts';
import { IfNoneMatchHeader } from '../config.ts';
import type { Operation } from '../operation.ts';
import {
  AutoTopUp,
  Catalog,
  Checkout,
  CheckoutListQuery,
  CheckoutPage,
  CheckoutParams,
  CheckoutQuery,
  OpenCheckout,
  Quote,
} from '../topups.ts';
import { ANY_ORIGIN_HEADERS } from './shared.ts';

const CREDIT = { tag: 'Credit', mount: 'native' } as const;
const READ = { ...CREDIT, method: 'GET', credential: 'account', scopes: ['credits:read'], isWrite: false } as const;
const CHECKOUTS_PATH = '/v1/topups/manual/checkouts';
const EXAMPLE_APP_ID = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const CATALOG_HEADERS = {
  ETag: 'Version of this content. Send it as `If-None-Match`.',
  ...ANY_ORIGIN_HEADERS,
} as const;

export const TOPUP_OPERATIONS = {
  readQuote: {
    ...READ,
    path: '/v1/topups/applications/{appId}/quote',
    summary: 'Read packs and prices',
    description: 'Returns the current price of credit. Prices are set by the operator. Requires the role viewer.',
    params: ApplicationParams,
    responses: { 200: { description: 'The quote.', schema: Quote } },
    errors: ['not_found'],
  },
  openCheckout: {
    ...CREDIT,
    method: 'POST',
    path: CHECKOUTS_PATH,
    summary: 'Order credit',
    description:
      'Opens a checkout. With `manual`, the response contains the payment instructions, and the credit is added when the operator has confirmed the payment. Requires the role owner, a recent proof of identity, and the header `Idempotency-Key`. An expired quote is refused with `not_ready`.',
    credential: 'account',
    stepUp: true,
    isWrite: true,
    unknownFields: 'refuse',
    body: OpenCheckout,
    bodyExample: { applicationId: EXAMPLE_APP_ID, packId: 'p50', quoteId: 'mh2k3l9s.Zk3…' },
    responses: { 201: { description: 'The checkout.', schema: Checkout } },
    errors: ['not_found', 'permission_denied', 'idempotency_key_required', 'not_ready', 'limit_reached'],
  },
  listCheckouts: {
    ...READ,
    path: CHECKOUTS_PATH,
    summary: 'List checkouts',
    description: 'Returns the checkouts of an application, newest first. Requires the role owner.',
    query: CheckoutListQuery,
    responses: { 200: { description: 'A page of checkouts.', schema: CheckoutPage } },
    errors: ['not_found'],
  },
  readCheckout: {
    ...READ,
    path: `${CHECKOUTS_PATH}/{id}`,
    summary: 'Read a checkout',
    description:
      'Returns a checkout. With `wait`, the response is sent when the status has changed or the waiting time is over. Requires the role owner.',
    params: CheckoutParams,
    query: CheckoutQuery,
    responses: { 200: { description: 'The checkout.', schema: Checkout } },
    errors: ['not_found'],
  },
  cancelCheckout: {
    ...CREDIT,
    method: 'POST',
    path: `${CHECKOUTS_PATH}/{id}/cancel`,
    summary: 'Cancel a checkout',
    description: 'Cancels a checkout that is open. Requires the role owner.',
    credential: 'human',
    isWrite: true,
    params: CheckoutParams,
    responses: { 200: { description: 'The checkout.', schema: Checkout } },
    errors: ['not_found', 'permission_denied', 'already_decided'],
  },
  replaceAutoTopUp: {
    ...CREDIT,
    method: 'PUT',
    path: '/v1/topups/manual/auto',
    summary: 'Set automatic top-up',
    description:
      'Configures automatic top-ups, which require a provider that supports automatic payment. `manual` does not, so the request is refused with `feature_unavailable`. Requires the role owner and a recent proof of identity.',
    credential: 'human',
    stepUp: true,
    isWrite: true,
    unknownFields: 'refuse',
    body: AutoTopUp,
    bodyExample: {
      applicationId: EXAMPLE_APP_ID,
      enabled: true,
      threshold: 1_000_000,
      packId: 'p50',
      monthlyCap: 10_000,
    },
    responses: { 200: { description: 'The settings.', schema: AutoTopUp } },
    errors: ['not_found', 'permission_denied', 'feature_unavailable'],
  },
  readCatalog: {
    tag: 'Operations',
    method: 'GET',
    path: '/v1/purchases/catalog',
    summary: 'Read the catalog',
    description:
      'Returns the built-in operations and the meters by which their calls are charged. Requires no credential.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    headers: IfNoneMatchHeader,
    responses: {
      200: { description: 'The catalog.', schema: Catalog, headers: CATALOG_HEADERS },
      304: { description: 'The version that you have is current.', headers: CATALOG_HEADERS },
    },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
