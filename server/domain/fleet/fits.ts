// Checks whether a host may join the other hosts. It must share their secret and their file storage, its clock must
// agree with theirs, and they must be able to reach it. Each error names the setting to change.
import type { JoiningHost, LivingHost } from '../../engines/store/rows/hosts.ts';
import { Fault } from '../../kit/fault.ts';
import { isLoopback } from '../../kit/loopback.ts';

const CLOCK_SKEW_MAX_MS = 5_000;

export interface FileStorage {
  readonly kind: 'disk' | 's3';
  /**
   * Returns the mark of the storage. Hosts that read the same mark share the storage. Undefined if there is no mark
   * yet.
   */
  mark(): Promise<string | undefined>;
  /** Gives the storage a mark, and returns it. */
  setMark(): Promise<string>;
}

/**
 * Checks that the host may join, and returns the mark of the storage.
 * @throws Fault `fleet_refused`
 */
export async function assertMayJoin(
  ownHost: JoiningHost,
  storage: FileStorage,
  otherHosts: readonly LivingHost[],
): Promise<{ storeMark: string }> {
  const [firstHost] = otherHosts;
  if (!firstHost) return { storeMark: await markWhenAlone(storage) };
  const hostText = `host ${firstHost.id} (${firstHost.url})`;
  const isSiblingProcess = (otherHost: LivingHost): boolean => areSiblingProcesses(ownHost, otherHost);
  if (storage.kind === 'disk' && !otherHosts.every(isSiblingProcess))
    throw joinRefused(`This server keeps files on its disk, and the database is in use by ${hostText}.`, {
      cure: 'The hosts must share one bucket: set BERTH_S3_BUCKET for all of them, or stop the other host.',
    });
  for (const otherHost of otherHosts) assertCompatible(ownHost, otherHost);
  if (storage.kind === 'disk') return { storeMark: DISK_MARK };
  const storeMark = await storage.mark();
  for (const otherHost of otherHosts)
    if (otherHost.storeMark !== NO_MARK && otherHost.storeMark !== storeMark)
      throw joinRefused(`The bucket of this server differs from that of host ${otherHost.id} (${otherHost.url}).`, {
        cure: 'Set the same BERTH_S3_BUCKET and BERTH_S3_ENDPOINT for all hosts.',
      });
  return { storeMark: storeMark ?? firstHost.storeMark };
}

/** The mark of a host that was alone when it started and could not reach its bucket. */
const NO_MARK = '';
/** The mark of a host that keeps its files on its disk, which hosts on other machines cannot use. */
const DISK_MARK = 'disk';

async function markWhenAlone(storage: FileStorage): Promise<string> {
  if (storage.kind === 'disk') return DISK_MARK;
  const mark = async (): Promise<string> => (await storage.mark()) ?? (await storage.setMark());
  return mark().catch(() => NO_MARK);
}

function assertCompatible(ownHost: JoiningHost, otherHost: LivingHost): void {
  const hostText = `host ${otherHost.id} (${otherHost.url})`;
  if (otherHost.storeMark === DISK_MARK && !areSiblingProcesses(ownHost, otherHost))
    throw joinRefused(`The database is in use by ${hostText}, which keeps files on its disk.`, {
      cure: 'The hosts must share one bucket: set BERTH_S3_BUCKET for all of them, and restart the other host.',
    });
  if (otherHost.secretMark !== ownHost.secretMark)
    throw joinRefused(`The secret of this server differs from that of ${hostText}.`, {
      cure: 'Set the same BERTH_SECRET for all hosts.',
    });
  const skewMs = Math.abs(otherHost.clockMs - ownHost.clockMs);
  if (skewMs > CLOCK_SKEW_MAX_MS)
    throw joinRefused(`The clock of this server differs by ${Math.round(skewMs / 1000)} s from that of ${hostText}.`, {
      cure: 'Synchronize the clocks of all machines with NTP, then start again.',
    });
  if (
    hasSocketUrl(ownHost) || hasSocketUrl(otherHost)
      ? !areSiblingProcesses(ownHost, otherHost)
      : hasLoopbackUrl(ownHost) !== hasLoopbackUrl(otherHost)
  )
    throw joinRefused(`This server (${ownHost.url}) and ${hostText} cannot reach each other at these addresses.`, {
      cure: 'Set BERTH_PEER_URL of each host to an address at which the others reach it.',
    });
  if (otherHost.url === ownHost.url)
    throw joinRefused(`The address ${ownHost.url} is also the address of ${hostText}.`, {
      cure: 'Set BERTH_PEER_URL of each host to an address at which the others reach it.',
    });
}

/**
 * Whether both hosts are processes of one installation on one machine. Such processes share a folder, and reach each
 * other over Unix sockets.
 */
const areSiblingProcesses = (ownHost: Pick<JoiningHost, 'url'>, otherHost: Pick<JoiningHost, 'url'>): boolean =>
  hasSocketUrl(ownHost) && hasSocketUrl(otherHost) && new URL(ownHost.url).hash === new URL(otherHost.url).hash;

const hasSocketUrl = ({ url }: Pick<JoiningHost, 'url'>): boolean => url.startsWith('unix:');

const hasLoopbackUrl = ({ url }: Pick<JoiningHost, 'url'>): boolean => isLoopback(new URL(url).hostname);

const joinRefused = (problem: string, { cure }: { readonly cure: string }): Fault =>
  new Fault('fleet_refused', problem, { advice: cure });
