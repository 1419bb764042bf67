// The server as a child process of a test, with a clock that the test advances through the IPC channel. The test sends
// a number of milliseconds, and the server sends it back once the clock has advanced. `--ahead MS` sets the initial
// offset of the clock, so that a restarted server continues with the time of the previous one.
import { parseArgs } from 'node:util';
import { serve } from '../../server/main.ts';
import { TestClock } from './test-clock.ts';

const { ahead } = parseArgs({ options: { ahead: { type: 'string', default: '0' } } }).values;
const clock = new TestClock(Number(ahead));

process.on('message', ms => {
  clock.advance(Number(ms));
  process.send?.(ms);
});
// The test process has ended, so nobody will advance the clock or read the log.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));

process.exitCode = await serve(process.env, clock);
process.removeAllListeners('disconnect');
if (process.connected) process.disconnect();
