// All migrations in their order. A migration that was released is never changed; a new one gets the next number.
import type { Migration } from 'kysely/migration';
import { up as first } from './0001-first.ts';
import { up as limits } from './0002-limits.ts';
import { up as events } from './0004-events.ts';
import { up as files } from './0005-files.ts';
import { up as contexts } from './0006-contexts.ts';
import { up as network } from './0007-network.ts';
import { up as certificatesAndExtensions } from './0008-certificates-and-extensions.ts';
import { up as recordings } from './0009-recordings.ts';
import { up as logs } from './0010-logs.ts';
import { up as live } from './0011-live.ts';
import { up as removedDownloads } from './0012-removed-downloads.ts';
import { up as recordingOmissions } from './0014-recording-omissions.ts';
import { up as credentials } from './0015-credentials.ts';
import { up as vault } from './0016-vault.ts';
import { up as audit } from './0017-audit.ts';
import { up as people } from './0018-people.ts';
import { up as device } from './0019-device.ts';
import { up as members } from './0020-members.ts';
import { up as keyGrants } from './0021-key-grants.ts';
import { up as mails } from './0022-mails.ts';
import { up as egressDays } from './0023-egress-days.ts';
import { up as sessionUsage } from './0024-session-usage.ts';
import { up as usageHours } from './0025-usage-hours.ts';
import { up as invocations } from './0026-invocations.ts';
import { up as webhooks } from './0027-webhooks.ts';
import { up as credits } from './0028-credits.ts';
import { up as operations } from './0029-operations.ts';
import { up as lastPage } from './0030-last-page.ts';
import { up as creditFunctions } from './0033-credit-functions.ts';
import { up as invocationPrice } from './0034-invocation-price.ts';
import { up as keptInputs } from './0035-kept-inputs.ts';
import { up as browserOperations } from './0036-browser-operations.ts';
import { up as invocationsOfApplication } from './0037-invocations-of-application.ts';
import { up as typedCredentials } from './0040-typed-credentials.ts';
import { up as applicationEvents } from './0041-application-events.ts';
import { up as handoffs } from './0042-handoffs.ts';
import { up as actions } from './0043-actions.ts';
import { up as consumers } from './0044-consumers.ts';
import { up as fleet } from './0045-fleet.ts';
import { up as consumerEvents } from './0046-consumer-events.ts';
import { up as overHosts } from './0047-over-hosts.ts';
import { up as inbox } from './0048-inbox.ts';
import { up as handoffCallbacks } from './0049-handoff-callbacks.ts';
import { up as consumerData } from './0050-consumer-data.ts';
import { up as peopleAtSessions } from './0051-people-at-sessions.ts';
import { up as attempts } from './0052-attempts.ts';
import { up as placeSession } from './0053-place-session.ts';
import { up as creditOfLostHosts } from './0054-credit-of-lost-hosts.ts';
import { up as endOfControl } from './0055-end-of-control.ts';

export const migrations: Record<string, Migration> = {
  '0001-first': { up: first },
  '0002-limits': { up: limits },
  '0004-events': { up: events },
  '0005-files': { up: files },
  '0006-contexts': { up: contexts },
  '0007-network': { up: network },
  '0008-certificates-and-extensions': { up: certificatesAndExtensions },
  '0009-recordings': { up: recordings },
  '0010-logs': { up: logs },
  '0011-live': { up: live },
  '0012-removed-downloads': { up: removedDownloads },
  '0014-recording-omissions': { up: recordingOmissions },
  '0015-credentials': { up: credentials },
  '0016-vault': { up: vault },
  '0017-audit': { up: audit },
  '0018-people': { up: people },
  '0019-device': { up: device },
  '0020-members': { up: members },
  '0021-key-grants': { up: keyGrants },
  '0022-mails': { up: mails },
  '0023-egress-days': { up: egressDays },
  '0024-session-usage': { up: sessionUsage },
  '0025-usage-hours': { up: usageHours },
  '0026-invocations': { up: invocations },
  '0027-webhooks': { up: webhooks },
  '0028-credits': { up: credits },
  '0029-operations': { up: operations },
  '0030-last-page': { up: lastPage },
  '0033-credit-functions': { up: creditFunctions },
  '0034-invocation-price': { up: invocationPrice },
  '0035-kept-inputs': { up: keptInputs },
  '0036-browser-operations': { up: browserOperations },
  '0037-invocations-of-application': { up: invocationsOfApplication },
  '0040-typed-credentials': { up: typedCredentials },
  '0041-application-events': { up: applicationEvents },
  '0042-handoffs': { up: handoffs },
  '0043-actions': { up: actions },
  '0044-consumers': { up: consumers },
  '0045-fleet': { up: fleet },
  '0046-consumer-events': { up: consumerEvents },
  '0047-over-hosts': { up: overHosts },
  '0048-inbox': { up: inbox },
  '0049-handoff-callbacks': { up: handoffCallbacks },
  '0050-consumer-data': { up: consumerData },
  '0051-people-at-sessions': { up: peopleAtSessions },
  '0052-attempts': { up: attempts },
  '0053-place-session': { up: placeSession },
  '0054-credit-of-lost-hosts': { up: creditOfLostHosts },
  '0055-end-of-control': { up: endOfControl },
};
