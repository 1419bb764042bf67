// Which of a session's settings decide how its browser is started, and which are applied to one that runs. What holds in
// every page, worker and service worker is said at the start; nothing is patched in per target.
import { VIEWPORT_DEFAULT } from '../../../contract/sessions.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';
import type { WishedSettings } from './api.ts';
import type { Preparation } from './watchers.ts';

/** Two sessions with equal launch settings can be given the same warm browser. */
export interface LaunchSettings {
  readonly userAgent?: string;
  readonly locale?: string;
  readonly timezoneId?: string;
  readonly ignoreCertificateErrors?: boolean;
  readonly enablePdfViewer?: boolean;
  /** What watchers want it started with. */
  readonly env?: Readonly<Record<string, string>>;
  readonly switches?: readonly string[];
  readonly policies?: JsonObject;
}

/** Applied when a session takes the browser, before its first client message. */
export interface ClaimSettings {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly geolocation?: { readonly latitude: number; readonly longitude: number; readonly accuracy?: number };
}

export const DEFAULT_LAUNCH: LaunchSettings = {};

export function launchSettings(wished: WishedSettings, { env, switches, policies }: Preparation = {}): LaunchSettings {
  const { userAgent, locale, timezoneId, ignoreCertificateErrors, enablePdfViewer } = wished;
  return {
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(locale === undefined ? {} : { locale: locale.replaceAll('_', '-') }),
    ...(timezoneId === undefined ? {} : { timezoneId }),
    ...(ignoreCertificateErrors ? { ignoreCertificateErrors } : {}),
    ...(enablePdfViewer ? { enablePdfViewer } : {}),
    ...(env ? { env } : {}),
    ...(switches ? { switches } : {}),
    ...(policies ? { policies } : {}),
  };
}

export const claimSettings = ({ viewport, geolocation }: WishedSettings): ClaimSettings => ({
  viewport: viewport ?? VIEWPORT_DEFAULT,
  ...(geolocation ? { geolocation } : {}),
});

/** Equal for equal settings: members always come in the order above. */
export const fingerprint = (launch: LaunchSettings): string => JSON.stringify(launch);
