// The extensions of one browser: which extensions its session may load, which of them are loaded, and whether their
// workers are running.

import { Fault } from '../../kit/fault.ts';
import { isObject, textAt } from '../../kit/json.ts';
import { pollUntil, WaitExpired } from '../../kit/wait.ts';
import type { Control } from './control.ts';
import { ProtocolFailure } from './mux.ts';

const WORKER_TIMEOUT_MS = 5_000;
const POLL_INTERVAL_MS = 10;

export interface LoadedExtension {
  /** The id that Chromium assigned. */
  readonly id: string;
  /** False if the extension has a service worker that did not start. */
  readonly isWorkerRunning: boolean;
}

export class Extensions {
  readonly #control: Control;
  /**
   * The folders of the extensions in the box. Each folder is stored under its path and under the name that callers use.
   */
  readonly #folders = new Map<string, string>();

  constructor(control: Control) {
    this.#control = control;
  }

  register(name: string, folder: string): void {
    this.#folders.set(name, folder).set(folder, folder);
  }

  /**
   * Returns the folder of one of this session's extensions, given its path or its name. Undefined for any other path.
   */
  folderOf(path: string): string | undefined {
    return this.#folders.get(path);
  }

  /** Loads the extension. Throws `extension_not_loaded` with Chromium's message. */
  async load(folder: string, hasServiceWorker: boolean): Promise<LoadedExtension> {
    const { id } = await this.#control.send('Extensions.loadUnpacked', { path: folder }).catch(throwRefusal);
    if (typeof id !== 'string') throw new Error('Chromium returned no id for the extension');
    return { id, isWorkerRunning: !hasServiceWorker || (await this.#isWorkerRunning(id)) };
  }

  /** Returns the ids that Chromium assigned to those of the session's own extensions that are currently loaded. */
  async loadedIds(): Promise<readonly string[]> {
    const { extensions } = await this.#control.send('Extensions.getExtensions');
    const loadedExtensions = Array.isArray(extensions) ? extensions.filter(isObject) : [];
    return loadedExtensions.flatMap(one =>
      this.#folders.has(textAt(one, 'path') ?? '') ? (textAt(one, 'id') ?? []) : [],
    );
  }

  async #isWorkerRunning(id: string): Promise<boolean> {
    const isWorker = (info: unknown): boolean =>
      isObject(info) &&
      info.type === 'service_worker' &&
      textAt(info, 'url')?.startsWith(`chrome-extension://${id}/`) === true;
    const findWorker = async (): Promise<true | undefined> => {
      const { targetInfos } = await this.#control.send('Target.getTargets');
      return Array.isArray(targetInfos) && targetInfos.some(isWorker) ? true : undefined;
    };
    try {
      return await pollUntil(WORKER_TIMEOUT_MS, `the service worker of ${id}`, findWorker, POLL_INTERVAL_MS);
    } catch (error) {
      if (error instanceof WaitExpired) return false;
      throw error;
    }
  }
}

/** Throws a fault only for an error response from Chromium. Other errors, such as a timeout, are thrown unchanged. */
function throwRefusal(error: unknown): never {
  if (error instanceof ProtocolFailure) throw new Fault('extension_not_loaded', error.message, { cause: error });
  throw error;
}
