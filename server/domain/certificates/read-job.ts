// Parses an uploaded certificate file in a worker thread, because a file of one megabyte can contain tens of thousands
// of PEM lines.
import { isFault } from '../../kit/fault.ts';
import type { Job } from '../../kit/worker-pool.ts';
import { type ParsedCertificate, readCertificates } from './pem.ts';

export type ReadCertificatesOutput =
  | { readonly certificates: readonly ParsedCertificate[] }
  /** The file cannot be used. The value is the error message. */
  | { readonly refused: string };

const READ_TIMEOUT_MS = 10_000;

export const READ_CERTIFICATES: Job<Uint8Array, ReadCertificatesOutput> = {
  name: 'read certificates',
  module: import.meta.url,
  limitMs: READ_TIMEOUT_MS,
};

export function work({ buffer, byteOffset, byteLength }: Uint8Array): ReadCertificatesOutput {
  try {
    return { certificates: readCertificates(Buffer.from(buffer, byteOffset, byteLength)) };
  } catch (error) {
    if (isFault(error, 'invalid_file')) return { refused: error.message };
    throw error;
  }
}
