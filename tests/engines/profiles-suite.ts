// Packs hostile profiles and unpacks hostile archives with the tar helper, in one form of isolation. The tests create
// the files that a page could have created after escaping from its renderer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chownSync,
  createReadStream,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { constants, createZstdCompress } from 'node:zlib';
import {
  type PackedProfile,
  Profiles,
  type Seal,
  type SealedProfile,
  type Staging,
} from '../../server/engines/profiles/profiles.ts';
import { Sealer } from '../../server/engines/profiles/sealed-stream.ts';
import { TAR_END, tarHeader, tarPadding } from '../../server/engines/profiles/tar-writer.ts';
import type { BoxHost } from '../../server/engines/slots/box-host.ts';
import { firstUid, readInstallId } from '../../server/engines/slots/install.ts';
import { createBoxHost } from '../../server/engines/slots/open-slots.ts';
import { removeFolder } from '../../server/engines/slots/remove-folder.ts';
import { readTar } from '../../server/engines/slots/run-tar.ts';
import type { Form } from '../../server/engines/slots/slots.ts';
import { writeFiles } from '../../server/engines/slots/write-files.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Secret } from '../../server/kit/secret.ts';
import { eventually } from '../harness/until.ts';
import { LIMITS, makeDataDir, removeDataDir } from './slots-lab.ts';

const HOST_SECRET = 'only the host may read this';
const unabortedSignal = new AbortController().signal;

/** A tar header with fields that our archives never have. */
function evilHeader(name: string, kind = '0', link = '', size = 0): Buffer {
  const header = tarHeader('x', size);
  header.write(name, 0);
  header.write(kind, 156);
  header.write(link, 157);
  header.write('        ', 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/**
 * Command lines of the processes of the box's user. Empty if the box has no user of its own, because its processes
 * cannot be told apart from others.
 */
function commandLinesOf(uid: number | undefined): string[] {
  const commandLineOf = (pid: string): string[] => {
    try {
      const owner = /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      return owner === String(uid) ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')] : [];
    } catch {
      return []; // the process has just ended
    }
  };
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(commandLineOf);
}

const isEmpty = (list: readonly unknown[]): boolean => list.length === 0;

/**
 * Stores keys without wrapping them. In the server, the vault wraps them. These tests never read a key back from a row.
 */
const PLAIN_KEYS: ConstructorParameters<typeof Profiles>[0]['keys'] = {
  wrap: async (_, key) => key.reveal(),
  unwrap: async (_, wrapped) => new Secret(wrapped),
};

export function describeProfiles(form: Form): void {
  let dataDir = '';
  let host: BoxHost;
  let profiles: Profiles;
  let uid: number | undefined;
  let nextNumber = 0;

  describe(`profiles, form ${form}`, { concurrency: 1 }, () => {
    before(async () => {
      dataDir = await makeDataDir();
      const isolation = form === 'process' ? 'process' : 'slot';
      const options = { dataDir, size: 3, isolation, limits: LIMITS, isListeningOnLoopback: true } as const;
      host = createBoxHost({ ...options, log: silentLog, clock: systemClock }, form);
      const folders: ConstructorParameters<typeof Profiles>[0]['folders'] = {
        readTar: (...args) => readTar(host, ...args),
        writeFiles: (...args) => writeFiles(host, ...args),
        remove: removeFolder,
      };
      profiles = new Profiles({ root: join(dataDir, 'contexts'), keys: PLAIN_KEYS, folders });
      uid = form === 'root' ? firstUid(readInstallId(dataDir)) : undefined;
      writeFileSync(join(dataDir, 'host-secret'), HOST_SECRET);
    });
    after(async () => {
      host.cgroups.close();
      await removeDataDir(dataDir);
    });

    const newSeal = (): Seal => ({ key: new Secret(randomBytes(32)), name: 'n' });

    /**
     * Makes the user of the box the owner of the path. If the path is a folder, does the same for everything below it
     * except symbolic links.
     */
    const giveToBox = (path: string): void => {
      if (uid === undefined) return;
      chownSync(path, uid, uid);
      if (lstatSync(path).isDirectory())
        for (const name of readdirSync(path))
          if (!lstatSync(join(path, name)).isSymbolicLink()) giveToBox(join(path, name));
    };

    const putFile = (folder: string, name: string, text: string | Buffer = name): string => {
      const file = join(folder, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      return file;
    };

    /** Stages a profile that `plant` fills, as if its browser had exited normally. */
    async function stageProfile(plant: (profile: string) => void): Promise<Staging> {
      const id = `s-${nextNumber++}`;
      const box = join(dataDir, 'sessions', id);
      mkdirSync(join(box, 'profile/Default'), { recursive: true });
      plant(join(box, 'profile'));
      if (!lstatSync(join(box, 'profile')).isSymbolicLink()) giveToBox(join(box, 'profile'));
      const staging = profiles.staging(id);
      await staging.create();
      await staging.markClean();
      await staging.moveProfile(box);
      return staging;
    }

    const sealedProfileOf = (file: string, packed: PackedProfile, profileSeal: Seal): SealedProfile => ({
      body: createReadStream(file),
      checksum: packed.checksum,
      seal: profileSeal,
    });

    /** Creates the empty folder of a box that is about to start. */
    function newBox(): string {
      const box = join(dataDir, 'sessions', `box-${nextNumber++}`);
      mkdirSync(box, { recursive: true });
      giveToBox(box);
      return box;
    }

    async function roundTrip(plant: (profile: string) => void): Promise<{ box: string; packed: PackedProfile }> {
      const profileSeal = newSeal();
      const staging = await stageProfile(plant);
      const packed = await profiles.pack(staging, profileSeal, unabortedSignal);
      const box = newBox();
      await profiles.unpack(sealedProfileOf(staging.archiveFile, packed, profileSeal), box, true, unabortedSignal);
      return { box, packed };
    }

    const filesIn = (folder: string): string[] =>
      existsSync(folder)
        ? readdirSync(folder, { recursive: true, encoding: 'utf8' })
            .filter(name => lstatSync(join(folder, name)).isFile())
            .sort()
        : [];

    test('only the cookies and the storage of a profile are packed, and the unpacked files belong to the user of the box', async () => {
      const { box, packed } = await roundTrip(profile => {
        putFile(profile, 'Default/Cookies');
        putFile(profile, 'Default/Local Storage/leveldb/000003.log');
        putFile(profile, 'Default/IndexedDB/https_a_0/1', randomBytes(300_000));
        putFile(profile, 'Default/History');
        putFile(profile, 'Default/Login Data');
        putFile(profile, 'Default/Network/Trust Tokens');
        putFile(profile, 'Default/Network/Cookies');
        putFile(profile, 'SingletonLock');
      });
      assert.deepEqual(filesIn(box), [
        'profile/Default/Cookies',
        'profile/Default/IndexedDB/https_a_0/1',
        'profile/Default/Local Storage/leveldb/000003.log',
        'profile/Default/Network/Cookies',
      ]);
      assert.ok(packed.sizeBytes > 300_000);
      const { uid: owner, mode } = lstatSync(join(box, 'profile/Default/Cookies'));
      assert.equal(owner, uid ?? process.getuid?.());
      assert.equal(mode & 0o077, 0, 'other users have no access');
    });

    test('symbolic links, pipes and files with a line break in their names are skipped when a profile is packed', async () => {
      const { box, packed } = await roundTrip(profile => {
        putFile(profile, 'Default/Cookies');
        const storage = join(profile, 'Default/IndexedDB');
        mkdirSync(storage);
        symlinkSync(join(dataDir, 'host-secret'), join(storage, 'to-host'));
        symlinkSync('/etc', join(storage, 'to-etc'));
        symlinkSync('/etc/passwd', join(profile, 'Default/WebStorage'));
        symlinkSync(dataDir, join(profile, 'Default/File System'));
        execFileSync('mkfifo', [join(storage, 'pipe')]);
        linkSync(join(profile, 'Default/Cookies'), join(storage, 'hard'));
        putFile(storage, '-rf');
        putFile(storage, '--checkpoint-action=exec=sh');
        putFile(storage, 'new\nline');
      });
      assert.deepEqual(filesIn(box), [
        'profile/Default/Cookies',
        'profile/Default/IndexedDB/--checkpoint-action=exec=sh',
        'profile/Default/IndexedDB/-rf',
        'profile/Default/IndexedDB/hard',
      ]);
      assert.equal(packed.skipped, 4);
    });

    test('a profile that is not a folder is not moved', async () => {
      for (const plant of [
        (box: string) => symlinkSync(dataDir, join(box, 'profile')),
        (box: string) => writeFileSync(join(box, 'profile'), 'x'),
      ]) {
        const id = `s-${nextNumber++}`;
        const box = join(dataDir, 'sessions', id);
        mkdirSync(box, { recursive: true });
        plant(box);
        const staging = profiles.staging(id);
        await staging.create();
        await staging.markClean();
        await staging.moveProfile(box);
        assert.equal(await staging.hasProfile(), false);
      }
    });

    test('no files are packed from a folder that is a symbolic link', async () => {
      const { box } = await roundTrip(profile => {
        execFileSync('rm', ['-r', join(profile, 'Default')]);
        symlinkSync(dataDir, join(profile, 'Default'));
      });
      assert.deepEqual(filesIn(box), []);
    });

    test('packing is refused if a sparse file exceeds the size limit, and no packed archive is recorded', async () => {
      const staging = await stageProfile(profile => {
        const file = putFile(profile, 'Default/IndexedDB/huge', '');
        truncateSync(file, 2 * 1024 ** 3);
      });
      const failure = await profiles.pack(staging, newSeal(), unabortedSignal).catch(error => error);
      assert.ok(profiles.isRefusal(failure), String(failure));
      assert.equal(await staging.packedRecord(), undefined);
      await staging.remove();
      assert.equal(existsSync(staging.profileFolder), false);
    });

    test('files in too deeply nested folders are skipped when a profile is packed', async () => {
      const staging = await stageProfile(profile => {
        let folder = join(profile, 'Default/IndexedDB');
        for (let depth = 0; depth < 40; depth++) folder = join(folder, 'd'.repeat(60));
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, 'deep'), 'x');
      });
      const packedProfile = await profiles.pack(staging, newSeal(), unabortedSignal);
      assert.deepEqual([packedProfile.sizeBytes, packedProfile.skipped], [0, 1]);
      await staging.remove();
    });

    /** Seals an archive correctly, so that it can be refused only because of its content. */
    async function sealArchive(tar: Readable): Promise<SealedProfile> {
      const profileSeal = newSeal();
      const zstdOptions = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
      const sealedBytes = await buffer(
        tar.pipe(createZstdCompress(zstdOptions)).pipe(new Sealer(profileSeal.key, profileSeal.name)),
      );
      return {
        body: Readable.from([sealedBytes]),
        checksum: createHash('sha256').update(sealedBytes).digest(),
        seal: profileSeal,
      };
    }

    const tarWith = (evil: Buffer): Readable =>
      Readable.from([tarHeader('Default/Cookies', 4), Buffer.from('good'), tarPadding(4), evil, TAR_END]);

    for (const [what, header] of [
      ['a link to a file outside of the box', evilHeader('Default/IndexedDB/x', '2', '/etc/passwd')],
      ['a hard link', evilHeader('Default/IndexedDB/x', '1', '/etc/passwd')],
      ['a device', evilHeader('Default/IndexedDB/x', '4')],
      ['a pipe', evilHeader('Default/IndexedDB/x', '6')],
      ['a path to a parent folder', evilHeader('Default/IndexedDB/../../../../evil')],
      ['an absolute name', evilHeader('/tmp/evil')],
    ] as const)
      test(`an archive with ${what} is refused, and no unpacked file remains`, async () => {
        const box = newBox();
        const failure = await profiles
          .unpack(await sealArchive(tarWith(header)), box, true, unabortedSignal)
          .catch(error => error);
        assert.ok(profiles.isDamage(failure), String(failure));
        assert.deepEqual(readdirSync(box), []);
      });

    test('an archive that expands beyond the limit is refused, and no unpacked file remains', async () => {
      const bomb = (async function* () {
        yield evilHeader('Default/IndexedDB/bomb', '0', '', 3 * 1024 ** 3);
        for (let sent = 0; sent < 64; sent++) yield Buffer.alloc(1024 ** 2);
      })();
      const box = newBox();
      const failure = await profiles
        .unpack(await sealArchive(Readable.from(bomb)), box, true, unabortedSignal)
        .catch(error => error);
      assert.ok(profiles.isDamage(failure), String(failure));
      assert.deepEqual(readdirSync(box), []);
    });

    test('no process remains, regardless of when packing is aborted', async () => {
      for (let waitMs = 0; waitMs < 24; waitMs += 2) {
        const staging = await stageProfile(profile => putFile(profile, 'Default/IndexedDB/1', randomBytes(500_000)));
        const packedProfile = await profiles
          .pack(staging, newSeal(), AbortSignal.timeout(waitMs))
          .catch(() => undefined);
        assert.equal((await staging.packedRecord())?.sizeBytes, packedProfile?.sizeBytes);
        await staging.remove();
      }
      await eventually('the processes to be gone', () => commandLinesOf(uid), isEmpty);
    });

    test('many small files and large files are unpacked unchanged', async () => {
      const files = new Map<string, Buffer>();
      for (let at = 0; at < 200; at++)
        files.set(`Default/IndexedDB/d${at % 7}/${at}`, randomBytes(at % 50 === 0 ? 1_500_000 : 100 * at));
      const { box } = await roundTrip(profile => {
        for (const [name, bytes] of files) putFile(profile, name, bytes);
      });
      assert.equal(filesIn(box).length, files.size);
      for (const [name, bytes] of files)
        assert.ok(readFileSync(join(box, 'profile', name)).equals(bytes), `${name} is unchanged`);
    });

    test('unpacking fails if a link or a file is in the way, and writes nothing through a link', async () => {
      const otherFolder = join(dataDir, `elsewhere-${nextNumber++}`);
      const makeGoodArchive = () =>
        sealArchive(Readable.from([tarHeader('Default/Cookies', 4), 'good', tarPadding(4), TAR_END]));
      for (const plant of [
        (box: string) => symlinkSync(otherFolder, join(box, 'profile')),
        (box: string) => {
          mkdirSync(join(box, 'profile'));
          symlinkSync(otherFolder, join(box, 'profile/Default'));
        },
        (box: string) => symlinkSync(join(otherFolder, 'new'), join(putFile(box, 'profile/Default/x'), '../Cookies')),
        (box: string) => void putFile(box, 'profile/Default/Cookies', 'old'),
      ]) {
        mkdirSync(otherFolder, { recursive: true });
        const box = newBox();
        plant(box);
        await assert.rejects(profiles.unpack(await makeGoodArchive(), box, true, unabortedSignal), /exist/i);
        assert.deepEqual(readdirSync(otherFolder), []);
      }
    });

    test('altered bytes, a wrong key and a wrong checksum are reported as damage, and no unpacked file remains', async () => {
      const profileSeal = newSeal();
      const staging = await stageProfile(profile => putFile(profile, 'Default/IndexedDB/1', randomBytes(500_000)));
      const packedProfile = await profiles.pack(staging, profileSeal, unabortedSignal);
      const bytes = readFileSync(staging.archiveFile);
      const alteredBytes = Buffer.from(bytes);
      alteredBytes.writeUInt8(alteredBytes.readUInt8(400_000) ^ 1, 400_000);
      const alteredProfiles: SealedProfile[] = [
        { body: Readable.from([alteredBytes]), checksum: packedProfile.checksum, seal: profileSeal },
        { body: Readable.from([bytes.subarray(0, -20)]), checksum: packedProfile.checksum, seal: profileSeal },
        { body: Readable.from([bytes]), checksum: packedProfile.checksum, seal: newSeal() },
        { body: Readable.from([bytes]), checksum: randomBytes(32), seal: profileSeal },
      ];
      for (const sealedProfile of alteredProfiles) {
        const box = newBox();
        const failure = await profiles.unpack(sealedProfile, box, true, unabortedSignal).catch(error => error);
        assert.ok(profiles.isDamage(failure), String(failure));
        assert.deepEqual(readdirSync(box), []);
      }
    });

    test('a profile can be unpacked without its cookies', async () => {
      const profileSeal = newSeal();
      const staging = await stageProfile(profile => {
        putFile(profile, 'Default/Cookies');
        putFile(profile, 'Default/Cookies-journal');
        putFile(profile, 'Default/WebStorage/1');
      });
      const packedProfile = await profiles.pack(staging, profileSeal, unabortedSignal);
      const box = newBox();
      await profiles.unpack(
        sealedProfileOf(staging.archiveFile, packedProfile, profileSeal),
        box,
        false,
        unabortedSignal,
      );
      assert.deepEqual(filesIn(box), ['profile/Default/WebStorage/1']);
    });
  });
}
