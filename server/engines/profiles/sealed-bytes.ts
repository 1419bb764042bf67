// Seals and opens data that fits into memory: the cookies of a session.
import { buffer } from 'node:stream/consumers';
import type { Seal } from './archive.ts';
import { Opener, Sealer } from './sealed-stream.ts';

export function sealBytes(bytes: Buffer, { key, name }: Seal): Promise<Buffer> {
  const sealer = new Sealer(key, name);
  sealer.end(bytes);
  return buffer(sealer);
}

export function openBytes(sealed: Buffer, { key, name }: Seal): Promise<Buffer> {
  const opener = new Opener(key, name);
  opener.end(sealed);
  return buffer(opener);
}
