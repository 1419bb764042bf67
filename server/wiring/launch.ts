// The wiring of a launch: Chromium with the switches, policies and locale of a session, as the program of a box.
import { join } from 'node:path';
import { TIMEOUT_MAX_SECONDS } from '../../contract/sessions.ts';
import type { BoxStart, BrowserHost } from '../domain/sessions/browser-host.ts';
import type { LaunchSettings } from '../domain/sessions/settings.ts';
import { LocaleFolders } from '../engines/browser/locales.ts';
import { PolicyFolders } from '../engines/browser/policies.ts';
import { shellIdentitySwitches, switches } from '../engines/browser/switches.ts';
import { fileFingerprint, readChromiumVersion } from '../engines/slots/chromium.ts';
import type { BoxLayout, Program } from '../engines/slots/slots.ts';
import type { Clock } from '../kit/clock.ts';
import { Fault } from '../kit/fault.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

/**
 * The time after which Chromium is killed, even if no server is running: the length of the longest session, plus time
 * for the server to end the session properly.
 */
const LIFETIME_MS_MAX = TIMEOUT_MAX_SECONDS * 1000 + 120_000;

/** How long to wait after a failed read of the version of Chromium before the version is read again. */
const VERSION_RETRY_DELAY_MS = 60_000;

/** Folders that a browser reads while it runs. Call `release` when the browser has ended. */
interface LaunchFolders {
  readonly policies: string;
  readonly locale?: Pick<Program, 'mounts' | 'env'>;
  release(): void;
}

export function openLaunch(
  { clock }: Runtime,
  { config, slots }: Foundation,
): Pick<BrowserHost, 'programId' | 'startBox'> {
  const folder = join(config.dataDir, 'chromium');
  const policyFolders = new PolicyFolders(folder, LIFETIME_MS_MAX, clock);
  const identities = openIdentities(clock);
  const localeFolders = new LocaleFolders(folder, LIFETIME_MS_MAX, clock);

  function executableOf({ engine = 'chromium' }: LaunchSettings): string {
    const path = slots.engines.get(engine);
    if (path !== undefined) return path;
    throw new Fault('box_start_failed', `The engine ${engine} cannot be used on this machine.`, {
      advice: 'Run `berth doctor` to see why.',
    });
  }

  async function foldersOf(
    executable: string,
    { policies: sessionPolicies, locale: name }: LaunchSettings,
  ): Promise<LaunchFolders> {
    const policies = await policyFolders.prepare(sessionPolicies);
    if (!name) return { policies: policies.path, release: () => policies.release() };
    try {
      const locale = await localeFolders.prepare(executable, name);
      const release = (): void => {
        policies.release();
        locale.release();
      };
      return { policies: policies.path, locale, release };
    } catch (error) {
      policies.release();
      throw error;
    }
  }

  return {
    programId: launch => fileFingerprint(executableOf(launch)),
    startBox: async (start, signal) => {
      const { id: session, background, preparation: { fill } = {} } = start;
      const executable = executableOf(start.launch);
      const folders = await foldersOf(executable, start.launch);
      const identity = await identities.of(executable, start.launch);
      const program = (layout: BoxLayout): Program => programOf({ executable, identity }, start, folders, layout);
      const startingBox = slots.start(
        { session, lifetimeMs: LIFETIME_MS_MAX, program, background, ...(fill ? { fill } : {}) },
        signal,
      );
      void startingBox.then(box => box.whenGone).then(folders.release, folders.release);
      return startingBox;
    },
  };
}

/**
 * Determines the identity switches only once for each executable file of the browser, because reading the version
 * starts a process. A failed read is repeated after a minute.
 */
function openIdentities(clock: Clock) {
  const switchesByFingerprint = new Map<string, Promise<readonly string[]>>();
  /** For each executable file whose version could not be read: the monotonic time from which the read may be repeated. */
  const retryAtMs = new Map<string, number>();
  const readIdentity = async (executable: string, fingerprint: string): Promise<readonly string[]> => {
    const version = await readChromiumVersion(executable);
    if (version === undefined) retryAtMs.set(fingerprint, clock.monotonicMs() + VERSION_RETRY_DELAY_MS);
    return shellIdentitySwitches(version ?? '');
  };
  return {
    of: (executable: string, { engine }: LaunchSettings): Promise<readonly string[]> => {
      if (engine !== 'headless-shell') return Promise.resolve([]);
      const fingerprint = fileFingerprint(executable) ?? '';
      const isRetryDue = clock.monotonicMs() >= (retryAtMs.get(fingerprint) ?? Number.POSITIVE_INFINITY);
      if (isRetryDue) retryAtMs.delete(fingerprint);
      const existingIdentity = isRetryDue ? undefined : switchesByFingerprint.get(fingerprint);
      const identity = existingIdentity ?? readIdentity(executable, fingerprint);
      switchesByFingerprint.set(fingerprint, identity);
      return identity;
    },
  };
}

function programOf(
  { executable, identity }: { readonly executable: string; readonly identity: readonly string[] },
  { launch, preparation = {} }: BoxStart,
  { policies, locale }: LaunchFolders,
  { folder, egressPort, hasOwnSandbox }: BoxLayout,
): Program {
  return {
    executable,
    // If a switch is given several times, Chromium uses the last value. The result of `switches` therefore takes
    // precedence.
    args: [
      ...identity,
      ...(launch.switches ?? []),
      ...switches({ folder, egressPort, hasSandbox: hasOwnSandbox, ...launch }),
    ],
    mounts: [{ from: policies, to: '/etc/chromium' }, ...(locale?.mounts ?? []), ...(preparation.mounts ?? [])],
    env: { ...locale?.env, ...launch.env },
  };
}
