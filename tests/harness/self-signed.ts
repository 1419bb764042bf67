// A self-signed certificate for one test.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function createSelfSignedCert(address: string): { cert: Buffer; key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'berth-certificate-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  try {
    const subjectArgs = ['-subj', `/CN=${address}`, '-addext', `subjectAltName=IP:${address}`];
    const opensslArgs = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
      ...subjectArgs,
    ];
    execFileSync('openssl', opensslArgs, { stdio: 'ignore' });
    return { cert: readFileSync(cert), key: readFileSync(key) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
