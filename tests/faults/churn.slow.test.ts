// Like churn.test.ts, with a thousand and two hundred cycles.
import { TEST_ENGINE } from '../harness/engine.ts';
import { churnTests } from './churn-tests.ts';

await churnTests({ counted: 1000, restarting: 200, growthMibMax: 24, engine: TEST_ENGINE });
