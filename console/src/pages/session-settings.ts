// The settings that are in effect for a session, as names and values.
import type { Session } from '../../../contract/sessions.ts';
import { bytesWords } from '../ui/time.tsx';

type Row = readonly [string, string];

const yesOrNo = (value: unknown): string => (value === true ? 'yes' : 'no');

export function settingRows(session: Session): readonly Row[] {
  const lifeSeconds = (Date.parse(session.expiresAt) - Date.parse(session.createdAt)) / 1000;
  return [
    ['Lifetime', `${Number((lifeSeconds / 60).toFixed(1))} minutes`],
    ['Keep alive', yesOrNo(session.keepAlive)],
    ['Region', session.region],
    ...(session.contextId ? [['Context', session.contextId] as const] : []),
    ...(session.proxyBytes > 0 ? [['Through proxies', bytesWords(session.proxyBytes)] as const] : []),
    ...browserRows(Object(session.browserSettings ?? {})),
  ];
}

/** Returns the settings that matter in every session. Other settings are included only if they were set. */
function browserRows(settings: Readonly<Record<string, unknown>>): readonly Row[] {
  const { viewport, recordSession, logSession, maskInputs, takeover, egressBytes, geolocation } = settings;
  if (viewport === undefined) return [];
  const { width, height } = Object(viewport);
  const { latitude, longitude } = Object(geolocation ?? {});
  return [
    ['Viewport', `${width} × ${height}`],
    ['Recorded', recordSession === true ? `yes, ${MASK_WORDS[String(maskInputs)] ?? maskInputs}` : 'no'],
    ['Logged', yesOrNo(logSession)],
    ['During take-over', takeover === 'refuse' ? 'agent input is refused' : 'agent input waits'],
    ...(settings.blockAds === true ? [['Ads', 'blocked'] as const] : []),
    ...(settings.ignoreCertificateErrors === true ? [['Certificates', 'errors are ignored'] as const] : []),
    ...(settings.enablePdfViewer === true ? [['PDF files', 'shown in the tab'] as const] : []),
    ...(typeof egressBytes === 'number' ? [['Network budget', bytesWords(egressBytes)] as const] : []),
    ...(geolocation === undefined ? [] : [['Position', `${latitude}, ${longitude}`] as const]),
    ...TEXT_SETTINGS.flatMap(([key, name]) => {
      const value = settings[key];
      return typeof value === 'string' ? [[name, value] as const] : [];
    }),
  ];
}

const MASK_WORDS: Readonly<Record<string, string>> = {
  password: 'passwords masked',
  all: 'all fields masked',
  none: 'nothing masked',
};

const TEXT_SETTINGS = [
  ['locale', 'Locale'],
  ['timezoneId', 'Time zone'],
  ['userAgent', 'User agent'],
] as const;
