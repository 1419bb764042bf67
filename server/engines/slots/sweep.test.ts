import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { BoxHost } from './box-host.ts';
import { sweep } from './sweep.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-sweep-'));
after(() => rmSync(folder, { recursive: true }));

test('finds no boxes in a cgroup that no longer exists, for example because `berth doctor` removed it', async () => {
  const host = {
    ...{ form: 'process', install: 'no such install', sessionsDir: join(folder, 'sessions') },
    cgroups: { folders: [join(folder, 'removed')] },
  };
  assert.deepEqual(await sweep(host as unknown as BoxHost, new Set()), []);
});
