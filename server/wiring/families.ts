// The families of the API, in the order in which their watchers take part in a session: watchers that guard the network
// come first. To add a family, add its file to this folder and a line here.

import type { Identity } from '../domain/identity/identity.ts';
import { INVOCATION_OBJECT } from '../domain/invocations/files.ts';
import { openLogs } from '../domain/logs/open-logs.ts';
import { RECORDING_OBJECT } from '../domain/recordings/addresses.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import { PageNumbers } from '../domain/sessions/page-numbers.ts';
import type { ArtifactFolder } from '../engines/artifacts/keys.ts';
import type { AssertNone } from '../kit/assert-none.ts';
import type { Runtime } from '../kit/runtime.ts';
import { version } from '../version.ts';
import type { Admission } from './admission.ts';
import { openAudit } from './audit.ts';
import { openCertificates } from './certificates.ts';
import { openConfiguredOperations } from './configured-operations.ts';
import { openConsumers } from './consumers.ts';
import { openContexts } from './contexts.ts';
import { type CreditsDeps, openCredits } from './credits.ts';
import { openDailyEgress } from './daily-egress.ts';
import { openDevice } from './device.ts';
import { openEvents } from './events.ts';
import { openExtensions } from './extensions.ts';
import { openDownloads, openFiles } from './files.ts';
import type { Foundation } from './foundation.ts';
import { openHandoffs } from './handoffs.ts';
import { openIdempotency } from './idempotency.ts';
import { openInvocationFiles, type openInvocations } from './invocations.ts';
import { openLastPages } from './last-page.ts';
import { openLive } from './live.ts';
import { openMail } from './mail.ts';
import { openMembers } from './members.ts';
import { type NetworkDeps, openNetwork } from './network.ts';
import { openPeople } from './people.ts';
import { openRecordings } from './recordings.ts';
import { openStoredCredentials } from './stored-credentials.ts';
import { openUsage } from './usage.ts';
import { openWebhooks } from './webhooks.ts';

export interface FamiliesDeps extends Pick<NetworkDeps, 'endSession'>, Pick<CreditsDeps, 'isEndUnwritten'> {
  readonly identity: Identity;
  readonly admission: Admission;
  readonly liveSessions: LiveSessions;
}

export type Families = Awaited<ReturnType<typeof openFamilies>>;

type WithRemoval = Extract<
  Families[keyof Families] | ReturnType<typeof openInvocations>,
  { readonly removal: { readonly folder: ArtifactFolder } }
>;
/** Does not compile if no family removes the files of a folder when they are due. */
export type UnremovedFolder = AssertNone<Exclude<ArtifactFolder, WithRemoval['removal']['folder']>>;

export async function openFamilies(runtime: Runtime, foundation: Foundation, deps: FamiliesDeps) {
  const { identity, admission, liveSessions, endSession, isEndUnwritten } = deps;
  const { config, store } = foundation;
  const { clock, log } = runtime;
  const pages = new PageNumbers({ rows: store.pages, clock, log });
  const logOptions = { version: version(), keptMs: config.retention.filesMs };
  const logs = openLogs(runtime, { store, pages, isConsoleLogged: config.logRuntime, ...logOptions });
  const recordings = await openRecordings(runtime, foundation, pages);
  const invocationFiles = openInvocationFiles(foundation, admission.limits);
  const downloads = openDownloads(foundation, {
    ...{ [RECORDING_OBJECT]: recordings.addresses.find, [INVOCATION_OBJECT]: invocationFiles.find },
  });
  const live = openLive(runtime, foundation, {
    ...{ liveSessions, keyUses: identity.keyUses, waitingBytes: admission.waitingBytes },
    liveFrames: recordings.liveFrames,
    linkTo: download => downloads.linkTo(download),
  });
  const mail = openMail(runtime, foundation);
  const { applications } = identity;
  const members = openMembers(runtime, foundation, { applications, mail: mail.service });
  const storedCredentials = openStoredCredentials(runtime, foundation, applications);
  const invitedEmail = (secret: string) => members.service.invitations.invitedEmail(secret);
  return {
    network: await openNetwork(runtime, foundation, {
      endSession,
      onNavigationBlocked: (id, attempt) => logs.book.logBlockedNavigation(id, attempt),
    }),
    dailyEgress: openDailyEgress(runtime, foundation, endSession),
    usage: openUsage(runtime, foundation, applications),
    lastPages: openLastPages(foundation),
    credits: openCredits(runtime, foundation, { applications, endSession, isEndUnwritten }),
    certificates: openCertificates(runtime, foundation),
    contexts: openContexts(runtime, foundation),
    extensions: await openExtensions(runtime, foundation),
    live,
    recordings,
    invocations: { files: invocationFiles, tasks: [] },
    storedCredentials,
    configuredOperations: openConfiguredOperations(runtime, foundation, {
      ...{ applications, credentials: storedCredentials.calls, typedCredentials: storedCredentials.typed },
    }),
    logs,
    files: await openFiles(runtime, foundation, {
      ...{ liveSessions, limits: admission.limits, downloads },
      onDownloadStored: (download, frame) => void live.service.offer(download, frame),
    }),
    handoffs: await openHandoffs(runtime, foundation, { applications, admission, live: live.service, liveSessions }),
    events: await openEvents(runtime, foundation),
    webhooks: await openWebhooks(runtime, foundation, applications),
    audit: openAudit(runtime, foundation, applications),
    idempotency: openIdempotency(runtime, foundation),
    mail,
    members,
    people: openPeople(runtime, foundation, { identity, mail: mail.service, invitedEmail }),
    consumers: openConsumers(runtime, foundation, { identity, mail: mail.service }),
    device: await openDevice(runtime, foundation, identity),
  };
}
