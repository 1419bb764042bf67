// The names of all settings, learned by watching which of them server/config.ts asks for.
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
