import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeAuthority } from '../../tests/harness/authority.ts';
import { BadConfig } from '../kit/environment.ts';
import { silentLog } from '../kit/log.ts';
import { type CertificateWithKey, PeerTls } from './peer-tls.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-peer-tls-'));
after(() => rmSync(folder, { recursive: true }));
const authority = makeAuthority('Hosts');
const [certFile, keyFile, caFile] = ['cert.pem', 'key.pem', 'ca.pem'].map(name => join(folder, name));
assert.ok(certFile && keyFile && caFile);
const files = { certFile, keyFile, caFile };

function writeCertificate(signed: CertificateWithKey): CertificateWithKey {
  writeFileSync(files.certFile, signed.cert);
  writeFileSync(files.keyFile, signed.key);
  return signed;
}

test('reloads replaced files, and keeps the previous certificate while the new files are unusable', async () => {
  writeFileSync(caFile, authority.pem);
  const firstCertificate = writeCertificate(authority.issue('127.0.0.1'));
  const tls = new PeerTls(files, silentLog);
  assert.deepEqual([tls.certificate, tls.authorities], [firstCertificate, authority.pem]);
  const renewedCertificates: CertificateWithKey[] = [];
  tls.onRenewed(shown => renewedCertificates.push(shown));
  const runTask = () => tls.tasks[0]?.run();
  assert.deepEqual(await runTask(), { renewed: 0 });
  writeCertificate({ ...authority.issue('127.0.0.1'), key: firstCertificate.key });
  assert.deepEqual(await runTask(), { renewed: 0 });
  assert.deepEqual(tls.certificate, firstCertificate);
  const secondCertificate = writeCertificate(authority.issue('127.0.0.1'));
  assert.deepEqual(await runTask(), { renewed: 1 });
  assert.deepEqual(renewedCertificates, [secondCertificate]);
});

test('refuses unusable certificate and CA files at startup, and names the setting', () => {
  writeCertificate({ ...authority.issue('127.0.0.1'), key: authority.issue('127.0.0.1').key });
  const isBadConfig = (name: string) => (error: unknown) =>
    error instanceof BadConfig && error.message.startsWith(name);
  assert.throws(() => new PeerTls(files, silentLog), isBadConfig('BERTH_TLS_PEER_CERT is'));
  writeFileSync(caFile, '-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n');
  assert.throws(() => new PeerTls({ caFile }, silentLog), isBadConfig('BERTH_TLS_PEER_CA is'));
  assert.throws(() => new PeerTls({ caFile: join(folder, 'none') }, silentLog), isBadConfig('BERTH_TLS_PEER_CA is'));
  assert.deepEqual(new PeerTls({}, silentLog).tasks, []);
});
