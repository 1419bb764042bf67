import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { Secret } from '../../kit/secret.ts';
import { Opener, SealError, Sealer } from './sealed-stream.ts';

const KIB = 1024;
const key = new Secret(randomBytes(32));

const seal = (plain: Buffer, name = 'n'): Promise<Buffer> =>
  buffer(Readable.from(pieces(plain, 10_007)).pipe(new Sealer(key, name)));

/** Returns the bytes that were output before the failure, and the failure, if any. */
async function open(sealed: Buffer, pieceBytes = 4_099, name = 'n', openerKey = key) {
  const parts: Buffer[] = [];
  const failure = await pipeline(
    Readable.from(pieces(sealed, pieceBytes)),
    new Opener(openerKey, name),
    async source => {
      for await (const part of source) parts.push(part);
    },
  ).then(
    () => undefined,
    error => error,
  );
  return { plain: Buffer.concat(parts), failure };
}

function* pieces(bytes: Buffer, length: number): Generator<Buffer, void> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

for (const length of [0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 300_000])
  test(`restores the original ${length} bytes of a sealed stream, regardless of the chunk size`, async () => {
    const plainBytes = randomBytes(length);
    const sealedBytes = await seal(plainBytes);
    for (const pieceBytes of [1_000, sealedBytes.length]) {
      const openResult = await open(sealedBytes, pieceBytes);
      assert.equal(openResult.failure, undefined);
      assert.ok(openResult.plain.equals(plainBytes));
    }
  });

test('opening a sealed stream that was altered, truncated, reordered or extended fails, and outputs only original bytes', async () => {
  const plainBytes = randomBytes(200_000);
  const sealedBytes = await seal(plainBytes);
  const chunkBytes = 64 * KIB + 16;
  const head = 40;
  const swapped = Buffer.concat([
    sealedBytes.subarray(0, head),
    sealedBytes.subarray(head + chunkBytes, head + 2 * chunkBytes),
    sealedBytes.subarray(head, head + chunkBytes),
    sealedBytes.subarray(head + 2 * chunkBytes),
  ]);
  const brokenStreams: Record<string, Buffer> = {
    swapped,
    'cut at a chunk': sealedBytes.subarray(0, head + chunkBytes),
    'cut in a chunk': sealedBytes.subarray(0, -1),
    'cut in the head': sealedBytes.subarray(0, 20),
    nothing: Buffer.alloc(0),
    continued: Buffer.concat([sealedBytes, Buffer.alloc(16)]),
    twice: Buffer.concat([sealedBytes, sealedBytes]),
    'not sealed': randomBytes(1000),
  };
  for (const at of [0, 8, head, head + chunkBytes, sealedBytes.length - 1]) {
    const alteredStream = Buffer.from(sealedBytes);
    alteredStream.writeUInt8(alteredStream.readUInt8(at) ^ 1, at);
    brokenStreams[`altered at ${at}`] = alteredStream;
  }
  for (const [what, bytes] of Object.entries(brokenStreams)) {
    const { plain: passedOn, failure } = await open(bytes);
    assert.ok(failure instanceof SealError, `${what}: ${failure}`);
    assert.ok(passedOn.equals(plainBytes.subarray(0, passedOn.length)), `${what}: other bytes were passed on`);
  }
});

test('a sealed stream cannot be opened with another key or another name', async () => {
  const sealedBytes = await seal(Buffer.from('a cookie'));
  for (const { plain, failure } of [
    await open(sealedBytes, 100, 'm'),
    await open(sealedBytes, 100, 'n', new Secret(randomBytes(32))),
  ]) {
    assert.ok(failure instanceof SealError);
    assert.equal(plain.length, 0);
  }
});

test('sealing the same bytes twice gives different results', async () => {
  const [one, two] = [await seal(Buffer.alloc(100)), await seal(Buffer.alloc(100))];
  assert.notDeepEqual(one, two);
});
