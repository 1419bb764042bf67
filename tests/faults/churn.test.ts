// Cycles of create, drive and release with random kills leave nothing behind: a hundred with warm browsers and a count
// every second, twenty in which the server is killed too. Ten times as many: churn.slow.test.ts.
import { churnTests } from './churn-tests.ts';

await churnTests({ counted: 100, restarting: 20, growthMibMax: 64 });
