// Loaded before each test file by tools/test.ts: a file that does not end, because a test hangs or leaves a timer, a
// socket or a process behind, is ended here and fails, with the names of the resources that kept the file alive.
import { after } from 'node:test';

/** The time limit for stopping the file's servers after its tests. */
const AFTER_TESTS_MS_MAX = 120_000;
/** The time limit for a whole file. --test-timeout limits each test. */
const FILE_MS_MAX = 30 * 60_000;
const SLOW_FILE_MS_MAX = 4 * 3_600_000;

function end(deadline: string): void {
  const alive = process.getActiveResourcesInfo().filter(name => name !== 'PipeWrap');
  process.stderr.write(`this test file did not end ${deadline}; still alive: ${alive.join(', ') || 'nothing'}\n`);
  process.exit(1);
}

// Threads and forked processes of a test inherit this preload. The limit applies to the test file only.
const file = process.argv[1] ?? '';
if (file.endsWith('.test.ts')) {
  const limit = file.endsWith('.slow.test.ts') ? SLOW_FILE_MS_MAX : FILE_MS_MAX;
  setTimeout(() => end(`within ${limit / 60_000} minutes`), limit).unref();
  after(() => {
    setTimeout(() => end(`${AFTER_TESTS_MS_MAX / 1000} s after its last test`), AFTER_TESTS_MS_MAX).unref();
  });
}
