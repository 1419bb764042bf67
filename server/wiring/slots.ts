// Opens the slots of this host, for the server and for the operator's commands.
import type { Config } from '../config.ts';
import type { OpenSlotsOptions } from '../engines/slots/open-slots.ts';
import { isLoopback } from '../kit/loopback.ts';
import type { Runtime } from '../kit/runtime.ts';

export const slotOptions = (
  config: Pick<
    Config,
    'dataDir' | 'slots' | 'warm' | 'isolation' | 'limits' | 'engine' | 'chromium' | 'headlessShell' | 'listen'
  >,
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
): OpenSlotsOptions => ({
  dataDir: config.dataDir,
  // Warm browsers, and the browser from which DevTools files are read, have additional slots, so that they never take a
  // slot from a session.
  size: config.slots + 2 * config.warm + 1,
  isolation: config.isolation,
  limits: config.limits,
  engine: config.engine,
  ...(config.chromium ? { chromiumPath: config.chromium } : {}),
  ...(config.headlessShell ? { headlessShellPath: config.headlessShell } : {}),
  isListeningOnLoopback: isLoopback(config.listen.host),
  mayLackBrowsers: config.slots === 0,
  log,
  clock,
});
