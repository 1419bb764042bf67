// A program that evaluates `1+1` in one session every few milliseconds and reports the response times to its parent. It
// is a separate process, so that the load of its parent is not measured. Exits when its parent exits.
import { systemClock } from '../server/kit/clock.ts';
import { CdpConnection } from './cdp-connection.ts';

const INTERVAL_MS = 4;

const connection = await CdpConnection.open(process.argv[2] ?? '');
const page = await connection.attachToPage();
let durationsMs: number[] = [];
process.on('message', () => {
  process.send?.(durationsMs);
  durationsMs = [];
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
for (;;) {
  const startMs = systemClock.monotonicMs();
  await connection.send('Runtime.evaluate', { expression: '1+1' }, page);
  durationsMs.push(systemClock.monotonicMs() - startMs);
  await systemClock.sleep(INTERVAL_MS);
}
