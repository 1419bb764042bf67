// The exports of the SDK: the client of the API, its error class, and helpers for the loops that programs would
// otherwise have to write.
export { BerthError } from './berth-error.ts';
export { type Berth, type BerthOptions, berthClient } from './client.ts';
export { type ConnectedBrowser as Connected, connect } from './connect.ts';
export { dataOf } from './data-of.ts';
export type { components, paths } from './generated/api.ts';
export { paginate } from './paginate.ts';
export {
  type KeySet,
  type ReceiptClaims,
  ReceiptInvalid,
  type VerifyReceiptOptions,
  verifyReceipt,
} from './verify-receipt.ts';
export {
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookInvalid,
  type WebhookMessage,
} from './verify-webhook.ts';
export { type Session, type SessionStatus, type WaitOptions, waitFor } from './wait-for.ts';
