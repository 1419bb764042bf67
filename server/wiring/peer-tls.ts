// TLS between hosts: the certificate that this host shows to others, and the authorities whose certificates it trusts.
// Replaced files are read again, because certificates expire while sessions are running.
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Config } from '../config.ts';
import { badValue } from '../kit/environment.ts';
import { reason } from '../kit/fault.ts';
import type { Log } from '../kit/log.ts';
import type { Task } from '../kit/task.ts';
import { readOperatorFile } from './operator-file.ts';

const RELOAD_INTERVAL_MS = 60_000;

export interface CertificateWithKey {
  readonly cert: string;
  readonly key: string;
}

export class PeerTls {
  readonly #config: Config['peerTls'];
  readonly #log: Log;
  #currentCertificate: CertificateWithKey | undefined;
  #authorities: string | undefined;
  #onRenewed: (current: CertificateWithKey) => void = () => {};
  readonly tasks: readonly Task[];

  /** Throws BadConfig for a file that cannot be used. */
  constructor(config: Config['peerTls'], log: Log) {
    this.#config = config;
    this.#log = log;
    this.#read();
    const isUsed = config.certFile !== undefined || config.caFile !== undefined;
    this.tasks = isUsed
      ? [{ name: 'renew_peer_certificate', everyMs: RELOAD_INTERVAL_MS, run: async () => this.#renew() }]
      : [];
  }

  /** Undefined if this host does not accept TLS connections itself. */
  get certificate(): CertificateWithKey | undefined {
    return this.#currentCertificate;
  }

  /** Undefined if the authorities are those that Node trusts by default. */
  get authorities(): string | undefined {
    return this.#authorities;
  }

  onRenewed(listener: (current: CertificateWithKey) => void): void {
    this.#onRenewed = listener;
  }

  #renew(): { renewed: number } {
    const previousCertificate = this.#currentCertificate;
    try {
      this.#read();
    } catch (error) {
      this.#log.warn('fleet.certificate_unusable', { reason: reason(error) });
      return { renewed: 0 };
    }
    if (
      !this.#currentCertificate ||
      (previousCertificate?.cert === this.#currentCertificate.cert &&
        previousCertificate.key === this.#currentCertificate.key)
    )
      return { renewed: 0 };
    this.#onRenewed(this.#currentCertificate);
    return { renewed: 1 };
  }

  #read(): void {
    const { certFile, keyFile, caFile } = this.#config;
    const authorities = caFile === undefined ? undefined : readOperatorFile('BERTH_TLS_PEER_CA', caFile);
    if (authorities !== undefined)
      assertUsable(() => assertCertificates(authorities), 'BERTH_TLS_PEER_CA', caFile, 'certificates (PEM)');
    const newCertificate =
      certFile !== undefined && keyFile !== undefined
        ? {
            cert: readOperatorFile('BERTH_TLS_PEER_CERT', certFile),
            key: readOperatorFile('BERTH_TLS_PEER_KEY', keyFile),
          }
        : undefined;
    if (newCertificate)
      assertUsable(() => createSecureContext(newCertificate), 'BERTH_TLS_PEER_CERT', certFile, EXPECTED_CERTIFICATE);
    this.#authorities = authorities;
    this.#currentCertificate = newCertificate;
  }
}

const EXPECTED_CERTIFICATE = 'a certificate (PEM) that belongs to BERTH_TLS_PEER_KEY';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Throws if the text contains no certificate or an invalid one. A secure context would silently ignore either mistake.
 */
function assertCertificates(pem: string): void {
  const pemCertificates = pem.match(CERTIFICATE);
  if (!pemCertificates) throw new Error('there is no certificate');
  for (const pemCertificate of pemCertificates) new X509Certificate(pemCertificate);
}

function assertUsable(tryUse: () => unknown, name: string, file = '', expected: string): void {
  try {
    tryUse();
  } catch {
    throw badValue(name, file, expected);
  }
}
