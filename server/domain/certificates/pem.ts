// Reads an uploaded certificate file: either PEM blocks that contain only certificates, or one certificate in DER form.
// Throws `invalid_file` with the reason.
import { X509Certificate } from 'node:crypto';
import type { ErrorCode } from '../../../contract/errors.ts';
import type { Fault } from '../../kit/fault.ts';
import { fault } from '../faults.ts';

/** Longer subjects are truncated. */
const SUBJECT_CHARACTERS_MAX = 512;
const BOUNDARY_PATTERN = /-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----/g;
const LABELS = ['CERTIFICATE', 'X509 CERTIFICATE'];

export interface ParsedCertificate {
  readonly der: Uint8Array;
  readonly subject: string;
  readonly fingerprint: string;
  readonly isAuthority: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Returns the certificates in file order, without duplicates. */
export function readCertificates(file: Buffer): readonly ParsedCertificate[] {
  const text = file.toString('latin1');
  // Checked before parsing, because a private key must never be stored, wherever it is in the file.
  if (/PRIVATE KEY/i.test(text))
    throw invalidFile(
      'it contains a private key',
      'Treat that key as disclosed, and upload the certificate without it.',
    );
  const blocks = blocksOf(text);
  const derCertificate = blocks.length === 0 ? parseCertificate(file) : undefined;
  if (derCertificate) return [parsedCertificateOf(derCertificate)];
  if (blocks.length === 0) throw invalidFile('it contains no certificate', EXPECTED_FORMAT);
  const certificateByFingerprint = new Map<string, ParsedCertificate>();
  for (const [index, { label, body }] of blocks.entries()) {
    const certificate = readBlock(label, body, index + 1);
    certificateByFingerprint.set(certificate.fingerprint, certificate);
  }
  return [...certificateByFingerprint.values()];
}

interface Block {
  readonly label: string;
  readonly body: string;
}

/**
 * Pairs each BEGIN line with the next END line of the same label. Two linear passes are used because, in a file that
 * consists only of BEGIN lines, a separate search for each END would take quadratic time.
 */
function blocksOf(text: string): readonly Block[] {
  const lines = [...text.matchAll(BOUNDARY_PATTERN)].map(({ 0: match, 1: kind, 2: label = '', index }) => ({
    isBegin: kind === 'BEGIN',
    label,
    from: index,
    to: index + match.length,
  }));
  const nextEnds = new Map<string, number>();
  const endIndexes = lines.map(() => -1);
  for (let lineIndex = lines.length - 1; lineIndex >= 0; lineIndex--) {
    const line = lines[lineIndex];
    if (line?.isBegin) endIndexes[lineIndex] = nextEnds.get(line.label) ?? -1;
    else if (line) nextEnds.set(line.label, lineIndex);
  }
  const blocks: Block[] = [];
  for (let lineIndex = 0; lineIndex < lines.length; lineIndex++) {
    const [begin, end] = [lines[lineIndex], lines[endIndexes[lineIndex] ?? -1]];
    if (!begin || !end) continue;
    blocks.push({ label: begin.label, body: text.slice(begin.to, end.from) });
    lineIndex = endIndexes[lineIndex] ?? lineIndex;
  }
  return blocks;
}

function readBlock(label: string, body: string, number: number): ParsedCertificate {
  if (!LABELS.includes(label))
    throw invalidFile(
      `block ${number} has the type ${label}`,
      'Remove the block: only CERTIFICATE blocks are allowed.',
    );
  const certificate = parseCertificate(Buffer.from(body, 'base64'));
  if (!certificate)
    throw invalidFile(`block ${number} is not a valid certificate`, 'Export it again, or remove that block.');
  return parsedCertificateOf(certificate);
}

const parsedCertificateOf = (certificate: X509Certificate): ParsedCertificate => ({
  der: certificate.raw,
  subject: toOneLine(certificate.subject),
  fingerprint: `sha256:${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
  isAuthority: certificate.ca,
  notBefore: certificate.validFromDate,
  notAfter: certificate.validToDate,
});

/** Returns undefined if the bytes are not a certificate, or if its dates cannot be parsed. */
function parseCertificate(der: Buffer): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    const dates = [certificate.validFromDate, certificate.validToDate];
    return dates.every(date => !Number.isNaN(date.getTime())) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the subject on one line. An empty subject is valid. Node reports an empty subject as undefined. */
const toOneLine = (subject: string | undefined): string =>
  (subject ?? '').split('\n').join(', ').slice(0, SUBJECT_CHARACTERS_MAX);

const EXPECTED_FORMAT =
  'Expected: text with one or more blocks that begin with -----BEGIN CERTIFICATE-----, or one certificate in DER form.';

const invalidFile = (problem: string, advice: string): Fault<ErrorCode> =>
  fault('invalid_file', `The file cannot be used: ${problem}.`, { advice });
