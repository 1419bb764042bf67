// What an upload of certificates holds: PEM blocks, each a certificate and nothing else, or one certificate in DER form.
// Refuses with the reason.
import { X509Certificate } from 'node:crypto';
import type { ErrorCode } from '../../../contract/errors.ts';
import type { Fault } from '../../kit/fault.ts';
import { fault } from '../faults.ts';

/** A name longer than this is cut where it is shown. */
const SUBJECT_CHARACTERS_MAX = 512;
const BORDER = /-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----/g;
const LABELS = ['CERTIFICATE', 'X509 CERTIFICATE'];

export interface ReadCertificate {
  readonly der: Uint8Array;
  readonly subject: string;
  readonly fingerprint: string;
  readonly isAuthority: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** In the order of the file, each once. */
export function readCertificates(file: Buffer): readonly ReadCertificate[] {
  const text = file.toString('latin1');
  // Looked for before anything is understood: whatever stands around it, a key must not be kept.
  if (/PRIVATE KEY/i.test(text))
    throw invalid('it holds a private key', 'Treat that key as disclosed, and upload the certificate without it.');
  const blocks = blocksOf(text);
  const lone = blocks.length === 0 ? parse(file) : undefined;
  if (lone) return [shown(lone)];
  if (blocks.length === 0) throw invalid('it holds no certificate', EXPECTED);
  const found = new Map<string, ReadCertificate>();
  for (const [index, { label, body }] of blocks.entries()) {
    const certificate = readBlock(label, body, index + 1);
    found.set(certificate.fingerprint, certificate);
  }
  return [...found.values()];
}

interface Block {
  readonly label: string;
  readonly body: string;
}

/** From each beginning to the next end of the same label. Read in two passes: a file may have nothing but beginnings. */
function blocksOf(text: string): readonly Block[] {
  const borders = [...text.matchAll(BORDER)].map(({ 0: whole, 1: kind, 2: label = '', index }) => ({
    isBegin: kind === 'BEGIN',
    label,
    from: index,
    to: index + whole.length,
  }));
  const nextEnds = new Map<string, number>();
  const endOf = borders.map(() => -1);
  for (let at = borders.length - 1; at >= 0; at--) {
    const border = borders[at];
    if (border?.isBegin) endOf[at] = nextEnds.get(border.label) ?? -1;
    else if (border) nextEnds.set(border.label, at);
  }
  const blocks: Block[] = [];
  for (let at = 0; at < borders.length; at++) {
    const [begin, end] = [borders[at], borders[endOf[at] ?? -1]];
    if (!begin || !end) continue;
    blocks.push({ label: begin.label, body: text.slice(begin.to, end.from) });
    at = endOf[at] ?? at;
  }
  return blocks;
}

function readBlock(label: string, body: string, number: number): ReadCertificate {
  if (!LABELS.includes(label))
    throw invalid(`its block ${number} is a ${label}`, 'Only blocks named CERTIFICATE are expected.');
  const certificate = parse(Buffer.from(body, 'base64'));
  if (!certificate)
    throw invalid(`its block ${number} is no certificate that can be read`, 'Export it again, or leave it out.');
  return shown(certificate);
}

const shown = (certificate: X509Certificate): ReadCertificate => ({
  der: certificate.raw,
  subject: oneLine(certificate.subject),
  fingerprint: `sha256:${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
  isAuthority: certificate.ca,
  notBefore: certificate.validFromDate,
  notAfter: certificate.validToDate,
});

/** One whose dates cannot be read is none either. */
function parse(der: Buffer): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    const dates = [certificate.validFromDate, certificate.validToDate];
    return dates.every(date => !Number.isNaN(date.getTime())) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** An empty subject is allowed, and has no text. */
const oneLine = (subject: string | undefined): string =>
  (subject ?? '').split('\n').join(', ').slice(0, SUBJECT_CHARACTERS_MAX);

const EXPECTED =
  'Expected is text with one or more blocks that begin with -----BEGIN CERTIFICATE-----, or one certificate in DER form.';

const invalid = (what: string, advice: string): Fault<ErrorCode> =>
  fault('invalid_file', `The file cannot be used: ${what}.`, { advice });
