// Starts one box with a browser and checks from inside that the box is isolated. The server does not start unless the
// probe passes.

import type { Socket } from 'node:net';
import { reason } from '../../kit/fault.ts';
import { newId, type SessionId } from '../../kit/ids.ts';
import { isObject } from '../../kit/json.ts';
import { pollUntil, withTimeout } from '../../kit/wait.ts';
import type { BoxHost } from './box-host.ts';
import { CdpPipe } from './cdp-pipe.ts';
import { cureFor } from './cures.ts';
import { UIDS_PER_INSTALL } from './install.ts';
import { countSandboxedProcesses } from './own-sandbox.ts';
import { type Namespace, namespaceOf } from './process-table.ts';
import type { RunningBox } from './running-box.ts';
import type { BoxLayout, Engine } from './slots.ts';
import { tryStartBox } from './start-box.ts';

export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly why: string; readonly cure: string };

/**
 * The slot with the last user id of this data folder. No session has this user id, so `berth doctor` can run beside a
 * server.
 */
const PROBE_SLOT = UIDS_PER_INSTALL - 1;
const PROBE_TIMEOUT_MS = 60_000;
const PAGE_TIMEOUT_MS = 15_000;
const PRIVATE_NAMESPACES: readonly Namespace[] = ['net', 'pid', 'mnt', 'user', 'ipc', 'uts'];
const SANDBOX_VERDICT = 'You are adequately sandboxed.';
/** A name that does not resolve (RFC 2606), so that any response comes from the egress listener. */
const PROBE_URL = 'http://berth-probe.invalid/';

export interface ProbedBrowser {
  readonly engine: Engine;
  readonly path: string;
}

export async function probe(host: BoxHost, browser: ProbedBrowser, outerSignal?: AbortSignal): Promise<ProbeResult> {
  try {
    await withTimeout(PROBE_TIMEOUT_MS, 'the isolation probe', signal => runProbe(host, browser, signal), outerSignal);
    return { ok: true };
  } catch (error) {
    outerSignal?.throwIfAborted();
    const why = reason(error);
    return { ok: false, why, cure: cureFor(why) };
  }
}

async function runProbe(host: BoxHost, { engine, path }: ProbedBrowser, signal: AbortSignal): Promise<void> {
  const session = newId<SessionId>(host.clock.now());
  const program = (layout: BoxLayout) => ({ executable: path, args: switches(layout), mounts: [] });
  const request = { session, program, lifetimeMs: PROBE_TIMEOUT_MS };
  const box = await tryStartBox(host, PROBE_SLOT, request, () => {}, signal);
  const finishController = new AbortController();
  const eitherSignal = AbortSignal.any([signal, finishController.signal]);
  try {
    await Promise.race([checkBox(box, engine, host.form !== 'process', eitherSignal), rejectOnEnd(box)]);
  } finally {
    finishController.abort();
    await box.close();
  }
}

async function rejectOnEnd(box: RunningBox): Promise<never> {
  const end = await box.whenGone;
  throw new Error(`the browser stopped: ${end.detail}; standard error: ${box.stderrTail() || 'empty'}`);
}

async function checkBox(box: RunningBox, engine: Engine, isJailed: boolean, signal: AbortSignal): Promise<void> {
  const pipe = new CdpPipe(box.fifoIn, box.fifoOut);
  try {
    await pipe.call('Browser.getVersion', {}, undefined, signal);
    if (!isJailed) return;
    checkNamespaces(box);
    const channel = await openPage(pipe, signal);
    await checkFiles(pipe, channel, signal);
    await checkListener(pipe, channel, box, signal);
    if (engine === 'chromium') await checkSandbox(pipe, channel, signal);
    else await checkRenderers(box, signal);
  } finally {
    pipe.close();
  }
}

function checkNamespaces(box: RunningBox): void {
  const init = box.initPid();
  if (init === undefined) throw new Error('the box has no process with pid 1 in a PID namespace of its own');
  const sharedNamespaces = PRIVATE_NAMESPACES.filter(kind => namespaceOf(init, kind) === namespaceOf('self', kind));
  if (sharedNamespaces.length > 0)
    throw new Error(`the box shares namespaces with this machine: ${sharedNamespaces.join(', ')}`);
}

async function openPage(pipe: CdpPipe, signal: AbortSignal): Promise<string> {
  const { targetId } = await pipe.call('Target.createTarget', { url: 'about:blank' }, undefined, signal);
  const { sessionId } = await pipe.call('Target.attachToTarget', { targetId, flatten: true }, undefined, signal);
  if (typeof sessionId !== 'string') throw new Error('Target.attachToTarget returned no sessionId');
  return sessionId;
}

async function checkFiles(pipe: CdpPipe, channel: string, signal: AbortSignal): Promise<void> {
  const { errorText } = await pipe.call('Page.navigate', { url: 'file:///etc/passwd' }, channel, signal);
  if (errorText !== 'net::ERR_FILE_NOT_FOUND')
    throw new Error(`file:///etc/passwd in the box: expected net::ERR_FILE_NOT_FOUND, got ${errorText ?? 'the file'}`);
}

async function checkListener(pipe: CdpPipe, channel: string, box: RunningBox, signal: AbortSignal): Promise<void> {
  const serveProbe = (socket: Socket): void => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nok'));
  };
  box.egress.on('connection', serveProbe);
  try {
    const { errorText } = await pipe.call('Page.navigate', { url: PROBE_URL }, channel, signal);
    if (errorText !== undefined) throw new Error(`the box cannot reach the egress listener: ${errorText}`);
  } finally {
    box.egress.off('connection', serveProbe);
  }
}

async function checkSandbox(pipe: CdpPipe, channel: string, signal: AbortSignal): Promise<void> {
  await pipe.call('Page.navigate', { url: 'chrome://sandbox' }, channel, signal);
  const verdict = await pollUntil(
    PAGE_TIMEOUT_MS,
    'chrome://sandbox',
    () => verdictOf(pipe, channel, signal),
    20,
    signal,
  );
  if (!verdict.includes(SANDBOX_VERDICT))
    throw new Error(`chrome://sandbox reports an inadequate sandbox: ${verdict.replaceAll(/\s+/g, ' ')}`);
}

/** Checks the renderers from outside, because headless shell has no chrome://sandbox. */
async function checkRenderers(box: RunningBox, signal: AbortSignal): Promise<void> {
  const findSandboxed = (): true | undefined => (countSandboxedProcesses(box.initPid()) > 0 ? true : undefined);
  await pollUntil(PAGE_TIMEOUT_MS, 'a sandboxed renderer', findSandboxed, 20, signal);
}

async function verdictOf(pipe: CdpPipe, channel: string, signal: AbortSignal): Promise<string | undefined> {
  const expression = "document.querySelector('#evaluation')?.innerText ?? ''";
  const { result } = await pipe.call('Runtime.evaluate', { expression, returnByValue: true }, channel, signal);
  const text = isObject(result) ? result.value : undefined;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}

const switches = ({ folder, egressPort, hasOwnSandbox }: BoxLayout): readonly string[] => [
  '--headless=new',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-gpu',
  '--disable-breakpad',
  '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,NetworkTimeServiceQuerying',
  '--gaia-url=http://127.0.0.1:1',
  '--password-store=basic',
  '--use-mock-keychain',
  `--proxy-server=http://127.0.0.1:${egressPort}`,
  '--proxy-bypass-list=<-loopback>',
  `--user-data-dir=${folder}/p`,
  '--remote-debugging-pipe',
  ...(hasOwnSandbox ? [] : ['--no-sandbox']),
  'about:blank',
];
