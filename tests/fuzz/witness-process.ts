// The client of another application's session, in a process of its own: the work of the attacks, which the parent does,
// does not delay its measurements. Sends the start and the response time of each query to its parent, in milliseconds.
// Exits with 0 after the parent has disconnected, and with 1 if a query was not answered.
import { spawnSync } from 'node:child_process';
import { CdpClient } from '../harness/cdp.ts';
import { withTimeLimit } from '../harness/until.ts';

const QUERY_INTERVAL_MS = 100;
const RESPONSE_TIMEOUT_MS = 60_000;

// A client normally runs on another machine, and does not compete with the server for processors. Where real-time
// priority is not permitted, the response times include the waits for a processor.
spawnSync('chrt', ['--rr', '--all-tasks', '--pid', '1', String(process.pid)]);

const client = await CdpClient.connect(process.argv[2] ?? '');
const page = await client.attachToPage();
while (process.connected) {
  const [startedAtMs, startMs] = [Date.now(), performance.now()];
  const product = await withTimeLimit(
    "the other application's session to answer",
    client.evaluate('6 * 7', page),
    RESPONSE_TIMEOUT_MS,
  );
  if (product !== 42) throw new Error(`the other application's page answered ${product} instead of 42`);
  const response = { startedAtMs, ms: performance.now() - startMs };
  if (process.connected) process.send?.(response, () => {}); // Fails if the parent has just disconnected.
  await new Promise(resolve => setTimeout(resolve, QUERY_INTERVAL_MS));
}
process.exit();
