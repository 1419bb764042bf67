// A program: asks one session for `1+1` again and again, a few milliseconds apart, and tells its parent how long each answer
// took. It is a process of its own, so that what its parent does is no part of what it measures. Ends with its parent.
import { systemClock } from '../server/kit/clock.ts';
import { CdpConnection } from './cdp-connection.ts';

const APART_MS = 4;

const connection = await CdpConnection.open(process.argv[2] ?? '');
const page = await connection.attachToPage();
let tookMs: number[] = [];
process.on('message', () => {
  process.send?.(tookMs);
  tookMs = [];
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
for (;;) {
  const began = systemClock.monotonicMs();
  await connection.send('Runtime.evaluate', { expression: '1+1' }, page);
  tookMs.push(systemClock.monotonicMs() - began);
  await systemClock.sleep(APART_MS);
}
