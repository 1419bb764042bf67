// Ids are UUIDv7 (RFC 9562), because these sort by time, and official clients check that ids are UUIDs.
import { randomFillSync } from 'node:crypto';

export type SessionId = string & { readonly kind: 'session' };
export type ApplicationId = string & { readonly kind: 'application' };
export type AccountId = string & { readonly kind: 'account' };
export type KeyId = string & { readonly kind: 'key' };
export type TokenId = string & { readonly kind: 'token' };
export type HumanSessionId = string & { readonly kind: 'human_session' };
export type ContextId = string & { readonly kind: 'context' };
export type VersionId = string & { readonly kind: 'version' };
export type CertificateId = string & { readonly kind: 'certificate' };
export type ExtensionId = string & { readonly kind: 'extension' };
export type HostId = string & { readonly kind: 'host' };
export type UploadId = string & { readonly kind: 'upload' };
export type AuditId = string & { readonly kind: 'audit' };
export type PasskeyId = string & { readonly kind: 'passkey' };
export type TicketId = string & { readonly kind: 'ticket' };
export type InvocationId = string & { readonly kind: 'invocation' };
export type ActionId = string & { readonly kind: 'action' };
export type ReceiptId = string & { readonly kind: 'receipt' };
export type WebhookId = string & { readonly kind: 'webhook' };
export type DeliveryId = string & { readonly kind: 'delivery' };
export type MailId = string & { readonly kind: 'mail' };
export type InvitationId = string & { readonly kind: 'invitation' };
export type DeviceAuthorizationId = string & { readonly kind: 'device_authorization' };
export type ReservationId = string & { readonly kind: 'reservation' };
export type CreditEntryId = string & { readonly kind: 'credit_entry' };
export type CheckoutId = string & { readonly kind: 'checkout' };
export type ConsumerId = string & { readonly kind: 'consumer' };
export type ConsumerPasskeyId = string & { readonly kind: 'consumer_passkey' };
export type ConsumerSessionId = string & { readonly kind: 'consumer_session' };
export type ConsumerSignInId = string & { readonly kind: 'consumer_sign_in' };
export type ConsumerTicketId = string & { readonly kind: 'consumer_ticket' };
export type ConsentId = string & { readonly kind: 'consent' };
export type HandoffId = string & { readonly kind: 'handoff' };
export type DownloadId = string & { readonly kind: 'download' };

export function newId<Id extends string>(now: Date): Id {
  return idOf(now, randomFillSync(Buffer.alloc(16)));
}

/** An id that sorts before every id that is made at this time or later. */
export const firstIdAt = <Id extends string>(time: Date): Id => idOf(time, Buffer.alloc(16));

function idOf<Id extends string>(time: Date, bytes: Buffer): Id {
  bytes.writeUIntBE(time.getTime(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as Id;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isUuid = (text: string): boolean => UUID.test(text);

/** Identifies a request in its response and in the log of the server. */
export const newRequestId = (now: Date): string => `req_${newId(now).replaceAll('-', '')}`;
