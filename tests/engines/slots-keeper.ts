// A server process that tests kill. Starts a guest or a browser in a box, prints the record and the FIFO paths of the
// box, and waits.
import type { Form } from '../../server/engines/slots/slots.ts';
import { chromium, guest, newSession, openTestSlots, START_TIMEOUT_MS, startOptions } from './slots-lab.ts';

const LIFETIME_MS = 60_000;

const [form, dataDir, program] = process.argv.slice(2);
if (!dataDir) throw new Error('usage: slots-keeper.ts FORM DATA_DIR guest|chromium');
const slots = await openTestSlots(form as Form, dataDir);
const options = startOptions(newSession(), program === 'chromium' ? chromium : guest);
const box = await slots.start(options, AbortSignal.timeout(START_TIMEOUT_MS));
process.stdout.write(
  `${JSON.stringify({ session: box.session, record: box.record, fifoIn: box.fifoIn, fifoOut: box.fifoOut })}\n`,
);
setTimeout(() => process.exit(1), LIFETIME_MS);
