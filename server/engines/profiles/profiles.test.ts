import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { Secret } from '../../kit/secret.ts';
import type { FolderAccess } from './archive.ts';
import { tarOf } from './checked-tar.ts';
import { Profiles, type ProfilesOptions } from './profiles.ts';

const root = await mkdtemp(join(tmpdir(), 'berth-profiles-'));
after(() => rm(root, { recursive: true }));

const wholeTar = Buffer.concat(
  await Array.fromAsync(tarOf(new Map([['Default/Network/Cookies', Buffer.from('cookies')]]))),
);
const invalidTar = Buffer.concat([wholeTar, Buffer.from('more')]);

for (const { what, tar, isFinal } of [
  { what: 'is empty', tar: wholeTar.subarray(0, 0), isFinal: false },
  { what: 'ends in a file', tar: wholeTar.subarray(0, 515), isFinal: false },
  { what: 'ends before its end marker', tar: wholeTar.subarray(0, 1_024), isFinal: false },
  { what: 'is invalid', tar: invalidTar, isFinal: true },
])
  test(`packing a profile whose tar ${what} fails ${isFinal ? 'permanently' : 'with an error that allows a retry'}`, async () => {
    const readTar: FolderAccess['readTar'] = (_folder, _names, consume) => consume(Readable.from([tar]));
    const folders = { readTar, remove: async () => {} } as unknown as ProfilesOptions['folders'];
    const profiles = new Profiles({ root, keys: {} as unknown as ProfilesOptions['keys'], folders });
    const staging = profiles.staging('session');
    await mkdir(join(staging.profileFolder, 'Default'), { recursive: true });
    await writeFile(join(staging.profileFolder, 'Default/Cookies'), 'cookies');
    const key = new Secret(Buffer.alloc(32)) as Parameters<typeof profiles.pack>[1]['key'];
    const packPromise = profiles.pack(staging, { key, name: 'name' }, new AbortController().signal);
    await assert.rejects(packPromise, (error: unknown) => {
      assert.match(String(error), /the tar/);
      return profiles.isRefusal(error) === isFinal;
    });
  });
