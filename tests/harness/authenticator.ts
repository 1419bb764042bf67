// A WebAuthn (level 3) authenticator as seen by a site: a P-256 key that signs challenges. Tests can forge responses by
// changing single fields.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface Forgery {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  /** Whether the authenticator reports that it verified the user. Default: true. */
  readonly isVerified?: boolean;
  readonly type?: string;
}

const PRESENT_FLAG = 0x01;
const VERIFIED_FLAG = 0x04;
const ATTESTED_FLAG = 0x40;

export class Authenticator {
  readonly #keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly #id = randomBytes(32);
  readonly #origin: string;
  #counter = 0;

  constructor(origin: string) {
    this.#keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#origin = origin;
  }

  /** Creates the response to `navigator.credentials.create`. */
  create(publicKey: Readonly<Record<string, unknown>>, forgery: Forgery = {}): object {
    const clientDataJSON = this.#clientData('webauthn.create', publicKey, forgery);
    const lengthBytes = Buffer.alloc(2);
    lengthBytes.writeUInt16BE(this.#id.length);
    const attestedData = Buffer.concat([Buffer.alloc(16), lengthBytes, this.#id, this.#coseKey()]);
    const authData = Buffer.concat([this.#authData(forgery, ATTESTED_FLAG), attestedData]);
    const attestationObject = Buffer.concat([
      Buffer.from([0xa3]),
      ...[
        cborText('fmt'),
        cborText('none'),
        cborText('attStmt'),
        Buffer.from([0xa0]),
        cborText('authData'),
        cborBytes(authData),
      ],
    ]);
    return this.#json({
      clientDataJSON: clientDataJSON.toString('base64url'),
      attestationObject: attestationObject.toString('base64url'),
      transports: ['internal'],
    });
  }

  /** Creates the response to `navigator.credentials.get`. */
  get(publicKey: Readonly<Record<string, unknown>>, forgery: Forgery = {}): object {
    const clientDataJSON = this.#clientData('webauthn.get', publicKey, forgery);
    const authenticatorData = this.#authData(forgery, 0);
    const signedData = Buffer.concat([authenticatorData, createHash('sha256').update(clientDataJSON).digest()]);
    return this.#json({
      clientDataJSON: clientDataJSON.toString('base64url'),
      authenticatorData: authenticatorData.toString('base64url'),
      signature: sign('sha256', signedData, this.#keys.privateKey).toString('base64url'),
    });
  }

  #json(response: object): object {
    const id = this.#id.toString('base64url');
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }

  #clientData(type: string, publicKey: Readonly<Record<string, unknown>>, forgery: Forgery): Buffer {
    const challenge = forgery.challenge ?? String(publicKey.challenge);
    const origin = forgery.origin ?? this.#origin;
    return Buffer.from(JSON.stringify({ type: forgery.type ?? type, challenge, origin, crossOrigin: false }));
  }

  #authData({ rpId = new URL(this.#origin).hostname, isVerified = true }: Forgery, extraFlags: number): Buffer {
    this.#counter += 1;
    const counterBytes = Buffer.alloc(4);
    counterBytes.writeUInt32BE(this.#counter);
    const flags = PRESENT_FLAG | (isVerified ? VERIFIED_FLAG : 0) | extraFlags;
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.from([flags]), counterBytes]);
  }

  /** The public key in COSE form: EC2, ES256, P-256. */
  #coseKey(): Buffer {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    return Buffer.concat([
      Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
      ...[cborBytes(Buffer.from(x, 'base64url')), Buffer.from([0x22]), cborBytes(Buffer.from(y, 'base64url'))],
    ]);
  }
}

const cborText = (value: string): Buffer => Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);

/** A CBOR byte string of up to 255 bytes. */
const cborBytes = (value: Buffer): Buffer => Buffer.concat([Buffer.from([0x58, value.length]), value]);
