// The server as a child of a test, with a clock that the test moves over the child's channel: it sends milliseconds and
// hears them back once the clock stands there. `--ahead MS` starts where a predecessor's clock had come to.
import { parseArgs } from 'node:util';
import { serve } from '../../server/main.ts';
import { TestClock } from './test-clock.ts';

const { ahead } = parseArgs({ options: { ahead: { type: 'string', default: '0' } } }).values;
const clock = new TestClock(Number(ahead));

process.on('message', ms => {
  clock.advance(Number(ms));
  process.send?.(ms);
});
// The test went away without a word: nobody moves the clock or reads the log any more.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));

process.exitCode = await serve(process.env, clock);
process.removeAllListeners('disconnect');
if (process.connected) process.disconnect();
