// The wiring of a launch: Chromium with the switches, policies and locale of a session, as the program of a box.
import { join } from 'node:path';
import { TIMEOUT_MAX_SECONDS } from '../../contract/sessions.ts';
import type { BoxStart, BrowserHost } from '../domain/sessions/browser-host.ts';
import { LocaleFolders } from '../engines/browser/locales.ts';
import { PolicyFolders } from '../engines/browser/policies.ts';
import { switches } from '../engines/browser/switches.ts';
import { editionOf, findChromium } from '../engines/slots/chromium.ts';
import type { BoxLayout, Program } from '../engines/slots/slots.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

/** After this Chromium is killed from outside: the longest session, and time for the server to end it properly. */
const LIFETIME_MS = TIMEOUT_MAX_SECONDS * 1000 + 120_000;

/** Folders that a browser reads while it runs. Released when it has ended. */
interface LaunchFolders {
  readonly policies: string;
  readonly locale?: Pick<Program, 'mounts' | 'env'>;
  release(): void;
}

export function openLaunch(
  { clock }: Runtime,
  { config, slots }: Foundation,
): Pick<BrowserHost, 'edition' | 'startBox'> {
  const folder = join(config.dataDir, 'chromium');
  const policyFolders = new PolicyFolders(folder, LIFETIME_MS, clock);
  const localeFolders = new LocaleFolders(folder, LIFETIME_MS, clock);
  const executable = findChromium(config.chromium) ?? '';

  async function foldersOf({ policies: chosen, locale: name }: BoxStart['launch']): Promise<LaunchFolders> {
    const policies = await policyFolders.prepare(chosen);
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
    edition: () => editionOf(executable),
    startBox: async (start, signal) => {
      const { id: session, background, preparation: { fill } = {} } = start;
      const folders = await foldersOf(start.launch);
      const program = (place: BoxLayout): Program => programOf(executable, start, folders, place);
      const started = slots.start(
        { session, lifetimeMs: LIFETIME_MS, program, background, ...(fill ? { fill } : {}) },
        signal,
      );
      void started.then(box => box.gone).then(folders.release, folders.release);
      return started;
    },
  };
}

function programOf(
  executable: string,
  { launch, preparation = {} }: BoxStart,
  { policies, locale }: LaunchFolders,
  { folder, egressPort, ownSandbox }: BoxLayout,
): Program {
  return {
    executable,
    args: [...(launch.switches ?? []), ...switches({ folder, egressPort, sandbox: ownSandbox, ...launch })],
    mounts: [{ from: policies, to: '/etc/chromium' }, ...(locale?.mounts ?? []), ...(preparation.mounts ?? [])],
    env: { ...locale?.env, ...launch.env },
  };
}
