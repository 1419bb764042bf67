// Decides at the start of the server how boxes are isolated: as root, rootless, or as ordinary processes. Throws if
// this machine cannot provide the configured isolation.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { BoxHost, SLOTS_WITH_UID_MAX } from './box-host.ts';
import { Cgroups, type Limits } from './cgroups.ts';
import { ENGINES, explainMissingEngine, findBrowser } from './chromium.ts';
import { cureFor } from './cures.ts';
import { firstUid, readInstallId } from './install.ts';
import { missingFeatures, UNJAILED_WARNINGS } from './missing.ts';
import { LOOPBACK_ONLY } from './network-link.ts';
import { type ProbeResult, probe } from './probe.ts';
import { ProbeCache } from './probe-cache.ts';
import { RunningSlots } from './running-slots.ts';
import type { Engine, Form, Slots } from './slots.ts';
import { spreadFolders } from './spread-folders.ts';
import { makeStage } from './stage.ts';
import { absentTools, JAIL_TOOLS, PROCESS_TOOLS, TOOLS } from './tools.ts';
import { canUseUserNamespaces } from './user-namespaces.ts';

export interface OpenSlotsOptions extends Pick<Runtime, 'clock' | 'log'> {
  readonly dataDir: string;
  /** How many boxes may run at once. */
  readonly size: number;
  readonly isolation: 'auto' | 'slot' | 'process';
  readonly limits: Limits;
  /**
   * The engine that must be installed for the server to start. Default: chromium. The other engine is used if it is
   * installed.
   */
  readonly engine?: Engine;
  readonly chromiumPath?: string;
  readonly headlessShellPath?: string;
  /**
   * Whether only this machine can reach the server. The isolation `auto` may run browsers without a jail only in this
   * case.
   */
  readonly isListeningOnLoopback: boolean;
  /** Whether the server may start although no browser can run. Set for a front, which has no slots. Default: false. */
  readonly mayLackBrowsers?: boolean;
}

export async function openSlots(options: OpenSlotsOptions, signal?: AbortSignal): Promise<Slots> {
  try {
    return await openTestedSlots(options, signal);
  } catch (error) {
    if (!options.mayLackBrowsers || signal?.aborted) throw error;
    const slots = openUntestedSlots(options);
    options.log.warn('isolation.no_browsers', { reason: reason(error) });
    return slots;
  }
}

async function openTestedSlots(options: OpenSlotsOptions, signal?: AbortSignal): Promise<Slots> {
  const browsers = findBrowsers(options);
  const sessionsDir = join(options.dataDir, 'sessions');
  mkdirSync(sessionsDir, { recursive: true, mode: 0o711 });
  // The only consequence of a failure here is that browsers start more slowly.
  await spreadFolders(sessionsDir).catch(error => options.log.info('sessions.not_spread', { reason: reason(error) }));
  if (options.isolation === 'process') return openUnjailed(options, browsers, 'BERTH_ISOLATION is process', signal);
  const form = jailedForm();
  assertEnoughUids(options.size, form);
  const jailedAttempt = await tryForm(options, form, browsers, signal);
  if (jailedAttempt.slots) return jailedAttempt.slots;
  if (options.isolation === 'auto' && options.isListeningOnLoopback)
    return openUnjailed(options, browsers, jailedAttempt.why, signal);
  throw jailedAttempt.fault;
}

/**
 * Opens slots without the probe. Helper programs run only with the configured isolation. If this machine cannot provide
 * the isolation, every call of a helper program fails.
 */
function openUntestedSlots(options: OpenSlotsOptions): Slots {
  const host = createBoxHost(options, options.isolation === 'process' ? 'process' : jailedForm());
  const engines = ENGINES.flatMap(engine => {
    const path = findBrowser(engine, configuredPath(options, engine));
    return path === undefined ? [] : [[engine, path] as const];
  });
  return new RunningSlots(host, options.size, missingFeaturesOf(host), new Map(engines));
}

export const jailedForm = (): Exclude<Form, 'process'> => (process.getuid?.() === 0 ? 'root' : 'rootless');

/**
 * Throws if two boxes, or a box and a helper, would have the same user id. This is an error even with the isolation
 * `auto`, which would otherwise run browsers without a jail.
 */
export function assertEnoughUids(size: number, form: Form): void {
  if (form !== 'root' || size <= SLOTS_WITH_UID_MAX) return;
  throw new Fault(
    'isolation_unavailable',
    `There are user ids for ${SLOTS_WITH_UID_MAX} browsers, but BERTH_SLOTS and BERTH_WARM require ${size}: one for each slot, two for each warm browser, and one for reading the DevTools files.`,
    { advice: 'Lower BERTH_SLOTS or BERTH_WARM, raise BERTH_PROCESSES, or run the server as an ordinary user.' },
  );
}

type EngineOptions = Pick<OpenSlotsOptions, 'engine' | 'chromiumPath' | 'headlessShellPath'>;

interface Browsers {
  readonly required: { readonly engine: Engine; readonly path: string };
  readonly other?: { readonly engine: Engine; readonly path: string };
}

export const requiredEngine = ({ engine = 'chromium' }: EngineOptions): Engine => engine;

export const configuredPath = (options: EngineOptions, engine: Engine): string | undefined =>
  engine === 'chromium' ? options.chromiumPath : options.headlessShellPath;

function findBrowsers(options: EngineOptions): Browsers {
  const engine = requiredEngine(options);
  const path = findBrowser(engine, configuredPath(options, engine));
  if (path === undefined) {
    const { why, cure } = explainMissingEngine(engine, configuredPath(options, engine));
    throw new Fault('box_start_failed', `The browser (${engine}) was ${why}.`, { advice: cure });
  }
  const otherBrowsers = ENGINES.filter(one => one !== engine).flatMap(one => {
    const otherPath = findBrowser(one, configuredPath(options, one));
    return otherPath === undefined ? [] : [{ engine: one, path: otherPath }];
  });
  return { required: { engine, path }, ...(otherBrowsers[0] ? { other: otherBrowsers[0] } : {}) };
}

/** `fault` is the error with which the start fails if no other form is tried. */
type Attempt = { readonly slots: Slots } | { readonly slots?: never; readonly why: string; readonly fault: Fault };

type FailedProbe = Exclude<ProbeResult, { ok: true }>;

async function tryForm(
  options: OpenSlotsOptions,
  form: Form,
  { required, other }: Browsers,
  signal?: AbortSignal,
): Promise<Attempt> {
  const missingTools = absentTools(form === 'process' ? PROCESS_TOOLS : JAIL_TOOLS);
  if (missingTools.length > 0) return failedAttempt(options, form, missingToolsResult(missingTools));
  const host = openBoxHost(options, form);
  if (!(host instanceof BoxHost)) return host;
  const probeResult = await probeUnlessCached(options.dataDir, host, required, signal);
  if (!probeResult.ok) {
    await host.close();
    return failedAttempt(options, form, probeResult);
  }
  const usableEngines = new Map([[required.engine, required.path]]);
  if (other) {
    const otherResult = await probeUnlessCached(options.dataDir, host, other, signal);
    if (otherResult.ok) usableEngines.set(other.engine, other.path);
    else options.log.warn('engine.unusable', { engine: other.engine, why: otherResult.why });
  }
  return {
    slots: new RunningSlots(host, options.size, missingFeaturesOf(host), usableEngines),
  };
}

const missingFeaturesOf = ({ form, cgroups, links }: BoxHost): readonly string[] =>
  missingFeatures(form, cgroups.absentControllers, links !== LOOPBACK_ONLY);

function failedAttempt(options: OpenSlotsOptions, form: Form, { why, cure }: FailedProbe): Attempt {
  if (form === 'process') {
    const faultMessage = `The browser (${requiredEngine(options)}) does not run on this machine: ${why}.`;
    return { why, fault: new Fault('box_start_failed', faultMessage, { advice: cure }) };
  }
  const what = `Browsers cannot run in a ${form} jail on this machine: ${why}.`;
  const advice = `${cure} Or set BERTH_ISOLATION=process to run browsers without a jail and without its protection.`;
  return { why, fault: new Fault('isolation_unavailable', what, { advice }) };
}

async function probeUnlessCached(
  dataDir: string,
  host: BoxHost,
  browser: Browsers['required'],
  signal?: AbortSignal,
): Promise<ProbeResult> {
  const cache = new ProbeCache(dataDir, host.form, browser);
  if (cache.hasPassed()) return { ok: true };
  const probeResult = await probe(host, browser, signal);
  if (probeResult.ok) cache.recordPass();
  return probeResult;
}

const missingToolsResult = (missingTools: readonly (keyof typeof TOOLS)[]): FailedProbe => ({
  ok: false,
  why: `${missingTools.join(', ')} not found`,
  cure: `Install the missing packages: \`apt-get install ${[...new Set(missingTools.map(tool => TOOLS[tool]))].join(' ')}\`.`,
});

function openBoxHost(options: OpenSlotsOptions, form: Form): BoxHost | Attempt {
  try {
    return createBoxHost(options, form);
  } catch (error) {
    // A Fault already contains advice.
    if (error instanceof Fault) return { why: error.message, fault: error };
    const why = `the setup of boxes failed: ${reason(error)}`;
    return failedAttempt(options, form, { ok: false, why, cure: cureFor(why) });
  }
}

export function createBoxHost(options: OpenSlotsOptions, form: Form): BoxHost {
  const installId = readInstallId(options.dataDir);
  const uid = form === 'root' ? firstUid(installId) : undefined;
  if (form === 'root' && uid === undefined)
    throw new Fault('isolation_unavailable', 'Too few user ids are mapped to give each browser a user id of its own.', {
      advice: 'Run the server as an ordinary user, or map at least 12000 ids into this user namespace.',
    });
  if (form === 'root') makeStage();
  const hasOwnSandbox = form !== 'process' || (process.getuid?.() !== 0 && canUseUserNamespaces());
  return new BoxHost({
    ...options,
    form,
    installId,
    firstUid: uid,
    hasOwnSandbox,
    cgroups: new Cgroups(installId),
  });
}

async function openUnjailed(
  options: OpenSlotsOptions,
  browsers: Browsers,
  why: string,
  signal?: AbortSignal,
): Promise<Slots> {
  const attempt = await tryForm(options, 'process', browsers, signal);
  if (!attempt.slots) throw attempt.fault;
  options.log.warn('isolation.none', { why, notProtected: UNJAILED_WARNINGS });
  return attempt.slots;
}
