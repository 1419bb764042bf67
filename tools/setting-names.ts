// The names of all settings, found by recording which ones server/config.ts reads.
import { readConfig } from '../server/config.ts';

export function listSettingNames(): string[] {
  const recordedNames = new Set<string>();
  const recordingEnv = new Proxy<Record<string, string | undefined>>(
    {},
    {
      get(_, name) {
        if (typeof name === 'string') recordedNames.add(name);
        return undefined;
      },
    },
  );
  readConfig(recordingEnv);
  return [...recordedNames].sort();
}
