// The form values for a new session, and the create request made from them, which contains only values that differ from
// the API's defaults.
import type { CreateSession } from '../../../contract/sessions.ts';

export interface SessionForm {
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

/**
 * keepAlive is set, because no client is connected when a user creates a session. The time limit is short, because
 * users forget their sessions.
 */
export const INITIAL_FORM: SessionForm = {
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

export function requestOf(form: SessionForm): CreateSession {
  const settings = settingsOf(form);
  const metadata = form.metadata.filter(({ name }) => name.trim() !== '');
  return {
    timeout: Math.round(Number(form.minutes) * 60),
    ...(form.keepAlive ? { keepAlive: true } : {}),
    ...(metadata.length > 0
      ? { userMetadata: Object.fromEntries(metadata.map(({ name, value }) => [name.trim(), value])) }
      : {}),
    ...(Object.keys(settings).length > 0 ? { browserSettings: settings } : {}),
  };
}

function settingsOf(form: SessionForm): NonNullable<CreateSession['browserSettings']> {
  const domains = form.allowedDomains.split(/[\s,]+/).filter(Boolean);
  const isDefaultSize = form.width === INITIAL_FORM.width && form.height === INITIAL_FORM.height;
  return {
    ...(isDefaultSize ? {} : { viewport: { width: Number(form.width), height: Number(form.height) } }),
    ...(form.locale.trim() ? { locale: form.locale.trim() } : {}),
    ...(form.timezoneId.trim() ? { timezoneId: form.timezoneId.trim() } : {}),
    ...(form.userAgent.trim() ? { userAgent: form.userAgent.trim() } : {}),
    ...(form.latitude !== '' && form.longitude !== ''
      ? { geolocation: { latitude: Number(form.latitude), longitude: Number(form.longitude) } }
      : {}),
    ...(form.contextId ? { context: { id: form.contextId, ...(form.persist ? { persist: true } : {}) } } : {}),
    ...(domains.length > 0 ? { allowedDomains: domains } : {}),
    ...(form.recordSession ? {} : { recordSession: false }),
    ...(form.logSession ? {} : { logSession: false }),
    ...(form.enablePdfViewer ? { enablePdfViewer: true } : {}),
    ...(form.ignoreCertificateErrors ? { ignoreCertificateErrors: true } : {}),
  };
}
