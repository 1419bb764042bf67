// Opens the slots as a server does, and prints their kind or the error. Used by tests that first remove something that
// slots need.
import { openSlots } from '../../server/engines/slots/open-slots.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { Fault } from '../../server/kit/fault.ts';
import { silentLog } from '../../server/kit/log.ts';
import { LIMITS } from './slots-lab.ts';

const [dataDir, isolation, listen, chromiumPath, size = '1'] = process.argv.slice(2);
if (!dataDir || (isolation !== 'auto' && isolation !== 'slot' && isolation !== 'process'))
  throw new Error('usage: slots-opener.ts DATA_DIR ISOLATION loopback|public [CHROMIUM [SIZE]]');

const warnings: unknown[] = [];
const log = { ...silentLog, warn: (event: string, fields: unknown) => void warnings.push({ event, fields }) };
const commonOptions = { dataDir, isolation, size: Number(size), limits: LIMITS, log, clock: systemClock } as const;
const options = {
  ...commonOptions,
  isListeningOnLoopback: listen === 'loopback',
  ...(chromiumPath ? { chromiumPath } : {}),
};
const report = await openSlots(options).then(
  async slots => {
    await slots.close();
    return { form: slots.form, isolation: slots.isolation, warnings };
  },
  error => ({ code: error instanceof Fault ? error.code : 'not a fault', message: String(error), warnings }),
);
process.stdout.write(`${JSON.stringify(report)}\n`);
