import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import { AdoptionNotes, ATTEMPTS_MAX, STABILITY_WAIT_MS } from './adoption-notes.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-adoptions-'));
after(() => rmSync(root, { recursive: true }));
const ID = '01a1fa50-5319-7450-a6b3-c787ada50631' as SessionId;
const OTHER_ID = '01a1fa50-5319-7450-a6b3-c787ada50632' as SessionId;

const openNotes = (folder: string, clock = new ManualClock()): AdoptionNotes =>
  new AdoptionNotes(join(root, folder), clock);

test('refuses only the session whose adoption caused the process to exit', async () => {
  const notes = openNotes('blamed');
  const delayedWork = Promise.withResolvers<() => void>();
  await notes.runAdoption(OTHER_ID, async () => true);
  await notes.runAdoption(ID, async () => {
    // Work that starts during the adoption is attributed to the session even after the adoption has returned.
    setImmediate(() => delayedWork.resolve(() => {}));
    void delayedWork.promise.then(() => notes.recordProcessEnd(new Error('it went wrong')));
  });
  await delayedWork.promise;
  await new Promise(setImmediate);
  notes.recordProcessEnd(new Error('of nobody'));
  const next = openNotes('blamed');
  assert.match(next.refusal(ID) ?? '', /while it adopted the browser: it went wrong$/);
  assert.equal(next.refusal(OTHER_ID), undefined);
  next.settle(ID);
  assert.equal(next.refusal(ID), undefined);
});

test('clears the adoption attempts of a stable session, and all adoption attempts on a normal shutdown', async () => {
  const clock = new ManualClock();
  for (let start = 0; start < 2 * ATTEMPTS_MAX; start++) {
    const notes = openNotes('stable', clock);
    assert.equal(notes.refusal(ID), undefined);
    await notes.runAdoption(ID, async () => {});
    if (start % 2 === 0) await clock.advance(STABILITY_WAIT_MS);
    else notes.close();
  }
  assert.deepEqual(readdirSync(join(root, 'stable')), []);
});

test('refuses a session after ATTEMPTS_MAX adoptions that were followed by a process exit without a recorded error', async () => {
  for (let start = 0; start < ATTEMPTS_MAX; start++) {
    const notes = openNotes('unseen');
    assert.equal(notes.refusal(ID), undefined);
    await notes.runAdoption(ID, async () => {});
  }
  assert.match(openNotes('unseen').refusal(ID) ?? '', /^the service ended 5 times/);
});

test('ignores an adoption note that cannot be read', () => {
  const notes = openNotes('spoiled');
  writeFileSync(join(root, 'spoiled', `${ID}.json`), '{"attempts":{"valueOf":1}');
  assert.equal(notes.refusal(ID), undefined);
});
