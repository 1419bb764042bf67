import assert from 'node:assert/strict';
import { test } from 'node:test';
import { invocationKey } from '../../engines/artifacts/keys.ts';
import { type ApplicationId, type InvocationId, newId } from '../../kit/ids.ts';
import type { OutboxFile } from '../files/outbox.ts';
import { InvocationFiles, type InvocationFilesParts } from './files.ts';

const NOW = new Date();
const row = { id: newId<InvocationId>(NOW), applicationId: newId<ApplicationId>(NOW) };
const picture = { bytes: new Uint8Array(1), mimeType: 'image/png' };

/** Returns the tested object, the files that each call of `post` received, and the staged files that were removed. */
function setup({ filesUntilFull }: { readonly filesUntilFull: number }) {
  const postedFiles: string[][] = [];
  const removedNames: string[] = [];
  let writeCount = 0;
  const files = new InvocationFiles({
    limits: { effective: async () => ({ maxStoredBytes: 1_000 }) },
    stored: { ofApplication: async () => 0 },
    staging: {
      write: async () => {
        if (writeCount === filesUntilFull) throw new Error('no space left on the disk');
        writeCount += 1;
        return { name: `staged-${writeCount}`, size: 1, checksum: 'abc' };
      },
      remove: async (name: string) => void removedNames.push(name),
    },
    outbox: {
      post: async (_: ApplicationId, ...posts: readonly OutboxFile[]) =>
        void postedFiles.push(posts.map(({ key, staged }) => `${key} ${staged}`)),
    },
    keyOf: invocationKey,
  } as unknown as InvocationFilesParts);
  return { files, posted: postedFiles, removed: removedNames };
}

test('posts all files of a call to the outbox together', async () => {
  const { files, posted: postedFiles, removed: removedNames } = setup({ filesUntilFull: 2 });
  const kept = await files.keep(row, [picture, picture]);
  assert.deepEqual(kept, [
    { mimeType: 'image/png', size: 1, checksum: 'abc' },
    { mimeType: 'image/png', size: 1, checksum: 'abc' },
  ]);
  const key = `${row.applicationId}/invocations/${row.id}`;
  assert.deepEqual([postedFiles, removedNames], [[[`${key} staged-1`, `${key}-1 staged-2`]], []]);
});

test('posts no file of a call if one file cannot be staged, and removes the files that were staged', async () => {
  const { files, posted: postedFiles, removed: removedNames } = setup({ filesUntilFull: 2 });
  await assert.rejects(files.keep(row, [picture, picture, picture]), /no space left/);
  assert.deepEqual([postedFiles, removedNames], [[], ['staged-1', 'staged-2']]);
});
