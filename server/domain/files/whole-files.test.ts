import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completeGuids, downloadGuids, downloadState } from './whole-files.ts';

const [WHOLE, PARTIAL, ENDING] = [1, 2, 3].map(n => `0f9c2a4e-1111-4222-8333-44445555666${n}`) as [
  string,
  string,
  string,
];
const FILE_NAMES = [
  WHOLE,
  `${PARTIAL}.crdownload`,
  ENDING,
  `${ENDING}.crdownload`,
  '.org.chromium.Chromium.x',
  'report.csv',
];

test('counts a file as partial while its .crdownload file exists', () => {
  assert.deepEqual(completeGuids(FILE_NAMES), [WHOLE]);
  assert.deepEqual(
    [WHOLE, PARTIAL, ENDING, 'nowhere'].map(guid => downloadState(FILE_NAMES, guid)),
    ['whole', 'partial', 'partial', 'absent'],
  );
  assert.deepEqual([...new Set(downloadGuids(FILE_NAMES))], [WHOLE, PARTIAL, ENDING]);
});
