import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metric, quantile, readMetrics } from './metrics.ts';

const SAMPLES = readMetrics(`# HELP a b
# TYPE berth_sessions gauge
berth_sessions{status="PENDING"} 1
berth_sessions{status="RUNNING"} 3
berth_slots 8
start_bucket{le="0.1"} 2
start_bucket{le="1"} 9
start_bucket{le="+Inf"} 10
`);

test('reads samples by name and label', () => {
  assert.equal(metric(SAMPLES, 'berth_sessions'), 4);
  assert.equal(metric(SAMPLES, 'berth_sessions', ['status', 'RUNNING']), 3);
  assert.equal(metric(SAMPLES, 'berth_slots'), 8);
  assert.equal(metric(SAMPLES, 'nothing'), 0);
});

test('a quantile is the upper bound of its bucket', () => {
  assert.equal(quantile(SAMPLES, 'start', 0.1), 0.1);
  assert.equal(quantile(SAMPLES, 'start', 0.5), 1);
  assert.equal(quantile([], 'start', 0.5), undefined);
});
