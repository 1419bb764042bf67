// The extensions of one browser: those that its session may load, those that are loaded, and whether their workers live.

import { Fault } from '../../kit/fault.ts';
import { isObject, textAt } from '../../kit/json.ts';
import { until, WaitExpired } from '../../kit/wait.ts';
import type { Control } from './control.ts';
import { ProtocolFailure } from './mux.ts';

const WORKER_MS = 5_000;
const LOOK_EVERY_MS = 10;

export interface LoadedExtension {
  /** Chromium's own. */
  readonly id: string;
  /** False: it has a service worker, and that did not start. */
  readonly isAlive: boolean;
}

export class Extensions {
  readonly #control: Control;
  /** Folders in the box, by themselves and by what callers know the extension as. */
  readonly #offered = new Map<string, string>();

  constructor(control: Control) {
    this.#control = control;
  }

  offer(name: string, folder: string): void {
    this.#offered.set(name, folder).set(folder, folder);
  }

  /** The folder of an extension of this session, by its path or its name; undefined for any other. */
  folderOf(path: string): string | undefined {
    return this.#offered.get(path);
  }

  /** Throws `extension_not_loaded` with what Chromium says. */
  async load(folder: string, hasServiceWorker: boolean): Promise<LoadedExtension> {
    const { id } = await this.#control.send('Extensions.loadUnpacked', { path: folder }).catch(asRefusal);
    if (typeof id !== 'string') throw new Error('Chromium gave no id for the extension');
    return { id, isAlive: !hasServiceWorker || (await this.#workerLives(id)) };
  }

  /** Chromium's ids of the session's own extensions that are loaded now. */
  async loadedIds(): Promise<readonly string[]> {
    const { extensions } = await this.#control.send('Extensions.getExtensions');
    const all = Array.isArray(extensions) ? extensions.filter(isObject) : [];
    return all.flatMap(one => (this.#offered.has(textAt(one, 'path') ?? '') ? (textAt(one, 'id') ?? []) : []));
  }

  async #workerLives(id: string): Promise<boolean> {
    const isIt = (info: unknown): boolean =>
      isObject(info) &&
      info.type === 'service_worker' &&
      textAt(info, 'url')?.startsWith(`chrome-extension://${id}/`) === true;
    const look = async (): Promise<true | undefined> => {
      const { targetInfos } = await this.#control.send('Target.getTargets');
      return Array.isArray(targetInfos) && targetInfos.some(isIt) ? true : undefined;
    };
    try {
      return await until(WORKER_MS, `the service worker of ${id}`, look, LOOK_EVERY_MS);
    } catch (error) {
      if (error instanceof WaitExpired) return false;
      throw error;
    }
  }
}

/** What Chromium answered, told apart from a browser that does not answer. */
function asRefusal(error: unknown): never {
  if (error instanceof ProtocolFailure) throw new Fault('extension_not_loaded', error.message, { cause: error });
  throw error;
}
