// A server process for the suites to kill: starts one guest in a box, prints how to find it again, and waits.
import type { Form } from '../../server/engines/slots/slots.ts';
import { newSession, openLab, startGuest } from './slots-lab.ts';

const LIFETIME_MS = 60_000;

const [form, dataDir] = process.argv.slice(2);
if (!dataDir) throw new Error('usage: slots-keeper.ts FORM DATA_DIR');
const slots = await openLab(form as Form, dataDir);
const box = await startGuest(slots, newSession());
process.stdout.write(
  `${JSON.stringify({ session: box.session, record: box.record, fifoIn: box.fifoIn, fifoOut: box.fifoOut })}\n`,
);
setTimeout(() => process.exit(1), LIFETIME_MS);
