import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { makeAuthority } from '../../../tests/harness/authority.ts';
import { isFault } from '../../kit/fault.ts';
import { readCertificates } from './pem.ts';

const root = makeAuthority('Example Root');
const otherRoot = makeAuthority('Other Root');
const leaf = root.issue('a.test', { from: -9, to: -2 });

const assertRefused = (text: string | Buffer, words: RegExp): void =>
  assert.throws(
    () => readCertificates(Buffer.from(text)),
    error => isFault(error, 'invalid_file') && words.test(error.message),
  );

test('reads a certificate and ignores the text around it', () => {
  const [certificate, ...more] = readCertificates(
    Buffer.from(`# our root\r\n${root.pem.replaceAll('\n', '\r\n')}\nthe end`),
  );
  const { der } = root;
  assert.deepEqual(more, []);
  assert.equal(certificate?.subject, 'CN=Example Root');
  assert.equal(certificate?.fingerprint, `sha256:${createHash('sha256').update(der).digest('hex')}`);
  assert.deepEqual(certificate?.der, der);
  assert.equal(certificate?.isAuthority, true);
});

test('reads a certificate in DER form', () => {
  const [certificate, ...more] = readCertificates(root.der);
  assert.deepEqual([certificate?.subject, certificate?.der, more], ['CN=Example Root', root.der, []]);
});

test('reads several certificates in file order, without duplicates', () => {
  const certificates = readCertificates(Buffer.from(root.pem + leaf.cert + otherRoot.pem + root.pem));
  assert.deepEqual(
    certificates.map(({ subject, isAuthority }) => [subject, isAuthority]),
    [
      ['CN=Example Root', true],
      ['CN=a.test', false],
      ['CN=Other Root', true],
    ],
  );
  assert.ok(certificates[1] && certificates[1].notAfter < new Date());
});

test('refuses a file that contains a private key, regardless of the label of the key', () => {
  assertRefused(root.pem + leaf.key, /private key/);
  assertRefused(`${root.pem}-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----`, /private key/);
  assertRefused(`${root.pem}-----begin rsa private key-----`, /private key/);
});

test('refuses a file that is not a certificate, and reports the reason', () => {
  assertRefused('', /no certificate.*BEGIN CERTIFICATE/);
  assertRefused(root.der.subarray(0, -5), /no certificate.*DER/);
  assertRefused(`${root.pem}-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----`, /block 2 has the type X509 CRL/);
  assertRefused('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', /block 1 is not a valid certificate/);
  assertRefused(root.pem.slice(0, -30), /no certificate/);
});

test('takes linear time to refuse a file that contains nothing but BEGIN lines', () => {
  const measureCpuMs = (bytes: number): number => {
    const cpuBefore = process.cpuUsage();
    assertRefused('-----BEGIN CERTIFICATE-----\n'.repeat(bytes / 28), /no certificate/);
    const { user, system } = process.cpuUsage(cpuBefore);
    return (user + system) / 1000;
  };
  measureCpuMs(100_000);
  const [short, long] = [measureCpuMs(100_000), measureCpuMs(1_000_000)];
  assert.ok(long < 40 * short + 200, `${short} ms of CPU for a tenth, ${long} ms for the whole`);
});
