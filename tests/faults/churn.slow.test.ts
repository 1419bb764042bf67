// Like churn.test.ts, but with a thousand cycles in the first test and two hundred in the second.
import { TEST_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ countedCycles: 1000, restartCycles: 200, growthMibMax: 24, engine: TEST_ENGINE });
