// How receipts and audit entries name an end user: by a keyed digest that only this installation can compute.
import { createHmac } from 'node:crypto';
import type { EndUser } from '../../../contract/actions.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';

/** Returns the digest for an end user. The same person has different digests in different applications. */
export const subjectDigest = (secret: Secret, application: ApplicationId, { providerId, subject }: EndUser): string =>
  `hmac:${createHmac('sha256', secret.reveal())
    .update(JSON.stringify(['end user', application, providerId, subject]))
    .digest('hex')}`;
