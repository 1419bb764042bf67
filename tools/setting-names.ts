// The names of all settings, found by recording which ones server/config.ts reads.
import { readConfig } from '../server/config.ts';

export function settingNames(): string[] {
  const asked = new Set<string>();
  const watched = new Proxy<Record<string, string | undefined>>(
    {},
    {
      get(_, name) {
        if (typeof name === 'string') asked.add(name);
        return undefined;
      },
    },
  );
  readConfig(watched);
  return [...asked].sort();
}
