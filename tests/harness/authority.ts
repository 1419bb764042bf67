// Certificate authorities for one test, and certificates that they sign: valid certificates, expired certificates, and
// certificates for another name. The certificates are encoded as DER here, because no common tool creates a certificate
// that has already expired.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const DAY_MS = 86_400_000;
const OID = {
  commonName: '550403',
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  extendedKeyUsage: '551d25',
  subjectAltName: '551d11',
  serverAuth: '2b06010505070301',
  ecdsaWithSha256: '2a8648ce3d040302',
} as const;
const TAG = { sequence: 0x30, set: 0x31, oid: 0x06, integer: 0x02, utf8: 0x0c, octets: 0x04, bits: 0x03, bool: 0x01 };
const NAME = { dns: 0x82, ip: 0x87 };

/** The start and the end of the validity, in days from now. */
export interface Validity {
  readonly from?: number;
  readonly to?: number;
}

export interface SignedCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  readonly pem: string;
  readonly der: Buffer;
  /** Creates a server certificate for a name or an IPv4 address. */
  issue(name: string, validity?: Validity): SignedCertificate;
}

export function makeAuthority(name: string, validity: Validity = {}): Authority {
  const { publicKey, privateKey } = newKeys();
  const basicConstraintsExtension = extension(
    OID.basicConstraints,
    true,
    sequence(encodeElement(TAG.bool, Buffer.from([0xff]))),
  );
  const keyUsageExtension = extension(OID.keyUsage, true, encodeElement(TAG.bits, Buffer.from([0x01, 0x06])));
  const der = signCertificate({
    ...{ subject: name, issuer: name, validity, publicKey, signingKey: privateKey },
    extensions: [basicConstraintsExtension, keyUsageExtension],
  });
  return { pem: pemOf(der), der, issue: (host, dates = {}) => issue(name, privateKey, host, dates) };
}

function issue(issuer: string, signingKey: KeyObject, host: string, validity: Validity): SignedCertificate {
  const { publicKey, privateKey } = newKeys();
  const isAddress = /^[0-9.]+$/.test(host);
  const name = isAddress
    ? encodeElement(NAME.ip, Buffer.from(host.split('.').map(Number)))
    : encodeElement(NAME.dns, Buffer.from(host));
  const der = signCertificate({
    ...{ subject: host, issuer, validity, publicKey, signingKey },
    extensions: [
      extension(OID.basicConstraints, true, sequence()),
      extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
      extension(OID.subjectAltName, false, sequence(name)),
    ],
  });
  return { cert: pemOf(der), key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

interface CertificateOptions {
  readonly subject: string;
  readonly issuer: string;
  readonly validity: Validity;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function signCertificate({ subject, issuer, validity, publicKey, signingKey, extensions }: CertificateOptions): Buffer {
  const { from = -1, to = 30 } = validity;
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const body = sequence(
    encodeElement(0xa0, encodeElement(TAG.integer, Buffer.from([2]))),
    encodeElement(TAG.integer, Buffer.concat([Buffer.from([0x01]), randomBytes(8)])),
    algorithm,
    nameOf(issuer),
    sequence(utcTime(from), utcTime(to)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    encodeElement(0xa3, sequence(...extensions)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, signingKey)]);
  return sequence(body, algorithm, encodeElement(TAG.bits, signature));
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

const nameOf = (commonName: string): Buffer =>
  sequence(encodeElement(TAG.set, sequence(oid(OID.commonName), encodeElement(TAG.utf8, Buffer.from(commonName)))));

const extension = (id: string, isCritical: boolean, value: Buffer): Buffer =>
  sequence(
    oid(id),
    ...(isCritical ? [encodeElement(TAG.bool, Buffer.from([0xff]))] : []),
    encodeElement(TAG.octets, value),
  );

/** A UTCTime, which has a two-digit year. */
const utcTime = (days: number): Buffer => {
  const digits = new Date(Date.now() + days * DAY_MS).toISOString().replace(/\D/g, '').slice(2, 14);
  return encodeElement(0x17, Buffer.from(`${digits}Z`));
};

const oid = (hex: string): Buffer => encodeElement(TAG.oid, Buffer.from(hex, 'hex'));

const sequence = (...parts: readonly Buffer[]): Buffer => encodeElement(TAG.sequence, Buffer.concat(parts));

function encodeElement(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const lengthBytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}

const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}/g, '$&\n').trimEnd()}\n-----END CERTIFICATE-----\n`;
