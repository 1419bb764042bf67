// Signed links. A signed link is a URL that serves one file for a few hours without a credential. It is bound to the
// application, the object, the method and the expiry time. If the file is deleted, the link returns 404.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type ApplicationId, isUuid } from '../../kit/ids.ts';
import type { Secret } from '../../kit/secret.ts';
import { fault } from '../faults.ts';

export const LINK_LIFETIME_MS = 6 * 3600_000;
const LINK_VERSION = '1';
const LINK_PATH = '/v1/browsers/files/';

/** `kind:id`, for example `download:…`. The kind determines the finder of the file. */
export type LinkObject = `${string}:${string}`;

export interface LinkTarget {
  readonly application: ApplicationId;
  readonly object: LinkObject;
}

export interface Link {
  readonly url: string;
  readonly expiresAt: Date;
}

export class Links {
  readonly #secret: Secret;
  readonly #publicUrl: string;
  readonly #clock: Clock;

  constructor(secret: Secret, publicUrl: string, clock: Clock) {
    this.#secret = secret;
    this.#publicUrl = publicUrl;
    this.#clock = clock;
  }

  /** Returns the expiry time of a link that is created now. */
  expiry(): Date {
    return addMs(this.#clock.now(), LINK_LIFETIME_MS);
  }

  /** Creates a link for GET requests. The link is also valid for HEAD requests, which reveal less. */
  make({ application, object }: LinkTarget, expiresAt = this.expiry()): Link {
    const payload = [LINK_VERSION, 'GET', application, object, expiresAt.getTime().toString(36)].join(' ');
    const token = `${Buffer.from(payload).toString('base64url')}.${this.#sign(payload)}`;
    return { url: `${this.#publicUrl}${LINK_PATH}${token}`, expiresAt };
  }

  read(token: string): LinkTarget {
    const [encoded = '', signature = '', ...extraParts] = token.split('.');
    const payload = Buffer.from(encoded, 'base64url').toString();
    const isAuthentic =
      equalsInConstantTime(signature, this.#sign(payload)) && Buffer.from(payload).toString('base64url') === encoded;
    const [version, verb, application = '', object = '', expiry = ''] = payload.split(' ');
    if (!isAuthentic || extraParts.length > 0 || version !== LINK_VERSION || verb !== 'GET' || !isUuid(application))
      throw invalidLink();
    const expiresAt = new Date(Number.parseInt(expiry, 36));
    if (!(expiresAt > this.#clock.now())) throw expiredLink(expiresAt);
    // The token was signed by `make`.
    return { application: application as ApplicationId, object: object as LinkObject };
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#secret.reveal()).update(`file link:${payload}`).digest('base64url');
  }
}

function equalsInConstantTime(actual: string, expected: string): boolean {
  const [one, other] = [Buffer.from(actual), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const invalidLink = () =>
  fault('signed_url_invalid', 'This link was not issued by this service, or it was altered.', {
    advice: 'Use the link exactly as it was returned, or list the files again to get a new link.',
  });

const expiredLink = (at: Date) =>
  fault('signed_url_expired', `This link expired at ${at.toISOString()}.`, {
    advice: 'Read the file or the list again to get a new link.',
  });
