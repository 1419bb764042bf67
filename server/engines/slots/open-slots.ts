// Decides, once at start, in which form boxes are made on this machine, and refuses rather than serve with less than was
// asked for.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { Fault, reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { Cgroups, type Limits } from './cgroups.ts';
import { findChromium, placesOfChromium } from './chromium.ts';
import { Ground } from './ground.ts';
import { firstUid, readInstallId } from './install.ts';
import { missingIn, UNPROTECTED } from './missing.ts';
import { LOOPBACK_ONLY } from './network-link.ts';
import { type ProbeResult, probe } from './probe.ts';
import { ProbeCache } from './probe-cache.ts';
import { RunningSlots } from './running-slots.ts';
import type { Form, Slots } from './slots.ts';
import { makeStage } from './stage.ts';
import { absentTools, JAIL_TOOLS, PROCESS_TOOLS, TOOLS } from './tools.ts';
import { userNamespacesWork } from './user-namespaces.ts';

export interface OpenSlotsWish {
  readonly dataDir: string;
  /** How many boxes may run at once. */
  readonly size: number;
  readonly isolation: 'auto' | 'slot' | 'process';
  readonly limits: Limits;
  readonly chromiumPath?: string;
  /** Whether only this machine can reach the server: the one case in which `auto` may serve without a jail. */
  readonly listenIsLoopback: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

export async function openSlots(wish: OpenSlotsWish, signal?: AbortSignal): Promise<Slots> {
  const chromium = chromiumFor(wish);
  mkdirSync(join(wish.dataDir, 'sessions'), { recursive: true, mode: 0o711 });
  if (wish.isolation === 'process') return openUnjailed(wish, chromium, 'BERTH_ISOLATION is process', signal);
  const form = jailedForm();
  const jailed = await tryForm(wish, form, chromium, signal);
  if (jailed.slots) return jailed.slots;
  if (wish.isolation === 'auto' && wish.listenIsLoopback)
    return openUnjailed(wish, chromium, jailed.failed.why, signal);
  throw new Fault(
    'isolation_unavailable',
    `Browsers cannot be jailed on this machine (form ${form}): ${jailed.failed.why}.`,
    {
      advice: `${jailed.failed.cure} Or set BERTH_ISOLATION=process to serve without any jail, which protects nothing.`,
    },
  );
}

export const jailedForm = (): Exclude<Form, 'process'> => (process.getuid?.() === 0 ? 'root' : 'rootless');

function chromiumFor({ chromiumPath }: OpenSlotsWish): string {
  const found = findChromium(chromiumPath);
  if (found) return found;
  throw new Fault('box_start_failed', `No Chromium at ${chromiumPath ?? placesOfChromium.join(', ')}.`, {
    advice:
      'Install it (`apt-get install chromium`), or name the real binary, not its launcher script, in BERTH_CHROMIUM.',
  });
}

type Tried =
  | { readonly slots: Slots }
  | { readonly slots?: never; readonly failed: Exclude<ProbeResult, { ok: true }> };

async function tryForm(wish: OpenSlotsWish, form: Form, chromium: string, signal?: AbortSignal): Promise<Tried> {
  const absent = absentTools(form === 'process' ? PROCESS_TOOLS : JAIL_TOOLS);
  if (absent.length > 0) return { failed: toolsAbsent(absent) };
  const ground = groundOrFault(wish, form);
  if (ground instanceof Fault) return { failed: { ok: false, why: ground.message, cure: '' } };
  const cache = new ProbeCache(wish.dataDir, form, chromium);
  const result = cache.hasPassed() ? ({ ok: true } as const) : await probe(ground, chromium, signal);
  if (!result.ok) {
    await ground.close();
    return { failed: result };
  }
  cache.pass();
  return {
    slots: new RunningSlots(ground, wish.size, missingIn(form, ground.cgroups.absent, ground.links !== LOOPBACK_ONLY)),
  };
}

const toolsAbsent = (absent: readonly (keyof typeof TOOLS)[]): Exclude<ProbeResult, { ok: true }> => ({
  ok: false,
  why: `${absent.join(', ')} not found`,
  cure: `Install what is missing: \`apt-get install ${[...new Set(absent.map(tool => TOOLS[tool]))].join(' ')}\`.`,
});

function groundOrFault(wish: OpenSlotsWish, form: Form): Ground | Fault {
  try {
    return layGround(wish, form);
  } catch (error) {
    if (error instanceof Fault) return error;
    const why = `this machine refuses: ${reason(error)}`;
    return new Fault('isolation_unavailable', why, { cause: error });
  }
}

export function layGround(wish: OpenSlotsWish, form: Form): Ground {
  const install = readInstallId(wish.dataDir);
  const uid = form === 'root' ? firstUid(install) : undefined;
  if (form === 'root' && uid === undefined)
    throw new Fault('isolation_unavailable', 'Too few user ids are mapped here to give each browser its own.', {
      advice: 'Run the server as an ordinary user, or map at least 12000 ids into this user namespace.',
    });
  if (form === 'root') makeStage();
  const ownSandbox = form !== 'process' || (process.getuid?.() !== 0 && userNamespacesWork());
  return new Ground({ ...wish, form, install, firstUid: uid, ownSandbox, cgroups: new Cgroups(install) });
}

async function openUnjailed(wish: OpenSlotsWish, chromium: string, why: string, signal?: AbortSignal): Promise<Slots> {
  const tried = await tryForm(wish, 'process', chromium, signal);
  if (!tried.slots)
    throw new Fault('box_start_failed', `Chromium does not run on this machine: ${tried.failed.why}.`, {
      advice: tried.failed.cure,
    });
  wish.log.warn('isolation.none', { why, notProtected: UNPROTECTED });
  return tried.slots;
}
