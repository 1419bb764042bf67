// Passwords as Argon2id hashes in PHC format. Computing a hash takes 64 MiB and tens of milliseconds on a thread of
// Node's pool, so the number of running and waiting computations is limited.
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { WorkLimiter } from '../../kit/work-limiter.ts';

/** RFC 9106, section 4: the second recommended option, but with one lane, because a lane is a thread of the pool. */
const ARGON2_PARAMETERS = { memory: 64 * 1024, passes: 3, parallelism: 1, tagLength: 32 } as const;
const SALT_BYTES = 16;
const CONCURRENT_HASHES_MAX = 2;
const WAITING_HASHES_MAX = 32;
const WAIT_TIMEOUT_MS = 5_000;
const LIMITER_OWNER = 'passwords';

const PHC = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43,86})$/;

interface Argon2Parameters {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly tagLength: number;
}

export class Passwords {
  readonly #limiter = new WorkLimiter({
    name: 'check a password',
    runningMax: { session: CONCURRENT_HASHES_MAX, application: CONCURRENT_HASHES_MAX, process: CONCURRENT_HASHES_MAX },
    waitingMax: WAITING_HASHES_MAX,
    withinMs: WAIT_TIMEOUT_MS,
  });
  /** A hash that matches no known password. Checking it takes as long as checking the hash of a password. */
  readonly #dummyHash = phcOf(randomBytes(SALT_BYTES), randomBytes(ARGON2_PARAMETERS.tagLength));

  /** @throws WorkLimitReached if too many computations are waiting. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    return phcOf(salt, await this.#derive(password, salt, ARGON2_PARAMETERS));
  }

  /**
   * Checks a password. If there is no hash, takes the same time and returns false.
   * @throws WorkLimitReached if too many computations are waiting.
   */
  async matches(password: string, phc: string | undefined): Promise<boolean> {
    const [, memory, passes, parallelism, salt = '', tag = ''] = PHC.exec(phc ?? this.#dummyHash) ?? [];
    const expectedTag = Buffer.from(tag, 'base64');
    const parameters = {
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
      tagLength: expectedTag.length,
    };
    const computedTag = await this.#derive(password, Buffer.from(salt, 'base64'), parameters);
    return timingSafeEqual(computedTag, expectedTag) && phc !== undefined;
  }

  #derive(password: string, nonce: Buffer, parameters: Argon2Parameters): Promise<Buffer> {
    const message = Buffer.from(password.normalize('NFKC'));
    return this.#limiter.run({ application: LIMITER_OWNER, session: LIMITER_OWNER }, () =>
      derive({ message, nonce, ...parameters }),
    );
  }
}

const derive = (parameters: Argon2Parameters & { readonly message: Buffer; readonly nonce: Buffer }): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    argon2('argon2id', parameters, (error, tag) => (error ? reject(error) : resolve(tag)));
  });

function phcOf(salt: Buffer, tag: Buffer): string {
  const { memory, passes, parallelism } = ARGON2_PARAMETERS;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpaddedBase64(salt)}$${unpaddedBase64(tag)}`;
}

/** Base64 without padding, as in PHC strings. */
const unpaddedBase64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');
