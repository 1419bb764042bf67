// What the form for a new session holds, and the request it becomes: only what differs from the API's defaults is sent.
import type { CreateSession } from '../../../contract/sessions.ts';

export interface SessionWish {
  readonly minutes: string;
  readonly keepAlive: boolean;
  readonly width: string;
  readonly height: string;
  readonly locale: string;
  readonly timezoneId: string;
  readonly userAgent: string;
  readonly latitude: string;
  readonly longitude: string;
  readonly contextId: string;
  readonly persist: boolean;
  readonly allowedDomains: string;
  readonly recordSession: boolean;
  readonly logSession: boolean;
  readonly enablePdfViewer: boolean;
  readonly ignoreCertificateErrors: boolean;
  readonly metadata: ReadonlyArray<{ readonly id: number; readonly name: string; readonly value: string }>;
}

/** Kept alive, because no client is there yet when a person creates it; not for long, because people forget. */
export const FIRST_WISH: SessionWish = {
  minutes: '15',
  keepAlive: true,
  width: '1280',
  height: '720',
  locale: '',
  timezoneId: '',
  userAgent: '',
  latitude: '',
  longitude: '',
  contextId: '',
  persist: false,
  allowedDomains: '',
  recordSession: true,
  logSession: true,
  enablePdfViewer: false,
  ignoreCertificateErrors: false,
  metadata: [{ id: 0, name: '', value: '' }],
};

export function requestOf(wish: SessionWish): CreateSession {
  const settings = settingsOf(wish);
  const metadata = wish.metadata.filter(({ name }) => name.trim() !== '');
  return {
    timeout: Math.round(Number(wish.minutes) * 60),
    ...(wish.keepAlive ? { keepAlive: true } : {}),
    ...(metadata.length > 0
      ? { userMetadata: Object.fromEntries(metadata.map(({ name, value }) => [name.trim(), value])) }
      : {}),
    ...(Object.keys(settings).length > 0 ? { browserSettings: settings } : {}),
  };
}

function settingsOf(wish: SessionWish): NonNullable<CreateSession['browserSettings']> {
  const domains = wish.allowedDomains.split(/[\s,]+/).filter(Boolean);
  const isDefaultSize = wish.width === FIRST_WISH.width && wish.height === FIRST_WISH.height;
  return {
    ...(isDefaultSize ? {} : { viewport: { width: Number(wish.width), height: Number(wish.height) } }),
    ...(wish.locale.trim() ? { locale: wish.locale.trim() } : {}),
    ...(wish.timezoneId.trim() ? { timezoneId: wish.timezoneId.trim() } : {}),
    ...(wish.userAgent.trim() ? { userAgent: wish.userAgent.trim() } : {}),
    ...(wish.latitude !== '' && wish.longitude !== ''
      ? { geolocation: { latitude: Number(wish.latitude), longitude: Number(wish.longitude) } }
      : {}),
    ...(wish.contextId ? { context: { id: wish.contextId, ...(wish.persist ? { persist: true } : {}) } } : {}),
    ...(domains.length > 0 ? { allowedDomains: domains } : {}),
    ...(wish.recordSession ? {} : { recordSession: false }),
    ...(wish.logSession ? {} : { logSession: false }),
    ...(wish.enablePdfViewer ? { enablePdfViewer: true } : {}),
    ...(wish.ignoreCertificateErrors ? { ignoreCertificateErrors: true } : {}),
  };
}
