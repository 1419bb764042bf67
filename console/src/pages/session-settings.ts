// The settings of a session as names and values.
import type { Session } from '../../../contract/sessions.ts';
import { bytesWords } from '../ui/time.tsx';

export function settingRows(session: Session): ReadonlyArray<readonly [string, string]> {
  const lifeSeconds = (Date.parse(session.expiresAt) - Date.parse(session.createdAt)) / 1000;
  return [
    ['Lifetime', `${Number((lifeSeconds / 60).toFixed(1))} minutes`],
    ['Keep alive', session.keepAlive ? 'yes' : 'no'],
    ['Region', session.region],
    ...(session.contextId ? [['Context', session.contextId] as const] : []),
    ...(session.proxyBytes > 0 ? [['Through proxies', bytesWords(session.proxyBytes)] as const] : []),
  ];
}
