// Errors of the egress proxy: a rule refused the request, or the request failed. Their messages are sent to the
// browser, so they contain no internal address and no system error.
import type { HostRule } from './host-rules.ts';
import type { AddressRule } from './rules.ts';

export type RefusalRule = AddressRule | HostRule | 'too_many_connections';

export class RefusedError extends Error {
  readonly rule: RefusalRule;

  constructor(rule: RefusalRule) {
    super(`refused by the rule ${rule}`);
    this.name = 'Refused';
    this.rule = rule;
  }
}

export type FailureKind =
  | 'bad_request'
  | 'name_not_resolved'
  | 'name_timed_out'
  | 'connect_failed'
  | 'connect_timed_out'
  | 'bad_answer'
  | 'host_not_reached'
  | ProxyFailureKind;

/** Failures of the upstream proxy itself, independent of the requested host. */
export type ProxyFailureKind =
  | 'proxy_unreachable'
  | 'proxy_timed_out'
  | 'proxy_not_trusted'
  | 'proxy_refused_user'
  | 'not_a_proxy';

const STATUSES: Readonly<Record<FailureKind, number>> = {
  bad_request: 400,
  name_not_resolved: 502,
  name_timed_out: 504,
  connect_failed: 502,
  connect_timed_out: 504,
  bad_answer: 502,
  host_not_reached: 502,
  proxy_unreachable: 502,
  proxy_timed_out: 504,
  proxy_not_trusted: 502,
  proxy_refused_user: 502,
  not_a_proxy: 502,
};

const MESSAGES: Readonly<Record<FailureKind, string>> = {
  bad_request: 'This request cannot be proxied, because the request is malformed or does not name a host.',
  name_not_resolved: 'The host name could not be resolved.',
  name_timed_out: 'The name servers did not respond in time.',
  connect_failed: 'The host did not accept the connection.',
  connect_timed_out: 'The host did not respond in time.',
  bad_answer: 'The host closed the connection early, or did not send a valid HTTP response.',
  host_not_reached: "The session's proxy could not reach the host.",
  proxy_unreachable: "The session's proxy cannot be reached, or did not send a valid response.",
  proxy_timed_out: "The session's proxy did not respond in time.",
  proxy_not_trusted: "The TLS handshake with the session's proxy failed, or its certificate is not trusted.",
  proxy_refused_user: "The session's proxy requires a user name and password, or refused those of the session.",
  not_a_proxy: "The server at the address of the session's proxy is not a proxy.",
};

export class FailedError extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, cause?: unknown) {
    super(MESSAGES[kind], { cause });
    this.name = 'Failed';
    this.kind = kind;
  }
}

/** An upstream proxy of the session failed. `proxy` is its name, never its address. */
export class ProxyFailedError extends FailedError {
  readonly proxyFailureKind: ProxyFailureKind;
  readonly proxy: string;

  constructor(failureKind: ProxyFailureKind, proxy: string, cause?: unknown) {
    super(failureKind, cause);
    this.name = 'ProxyFailed';
    this.proxyFailureKind = failureKind;
    this.proxy = proxy;
  }
}

const ADDRESS_ADVICE = 'The operator can allow addresses with BERTH_EGRESS_ALLOW.';

const ADVICE: Readonly<Record<RefusalRule, string>> = {
  own_service: 'A browser cannot reach the Berth service. Connect to the session through its connectUrl.',
  own_address:
    'The address belongs to the machine that runs Berth. The operator can allow this exact address with BERTH_EGRESS_ALLOW.',
  network_policy: "The session's networkPolicy does not allow this host.",
  ad: 'The session was created with blockAds, and the host is on the block list.',
  no_session: 'The browser is not yet assigned to a session.',
  egress_limit: 'The session has used all of its egressBytes, or its application all of its egressBytesPerDay.',
  too_many_connections: 'The session has too many open connections.',
  metadata: ADDRESS_ADVICE,
  loopback: ADDRESS_ADVICE,
  unspecified: ADDRESS_ADVICE,
  private: ADDRESS_ADVICE,
  shared: ADDRESS_ADVICE,
  link_local: ADDRESS_ADVICE,
  site_local: ADDRESS_ADVICE,
  unique_local: ADDRESS_ADVICE,
  multicast: ADDRESS_ADVICE,
  broadcast: ADDRESS_ADVICE,
  documentation: ADDRESS_ADVICE,
  benchmarking: ADDRESS_ADVICE,
  protocol: ADDRESS_ADVICE,
  relay: ADDRESS_ADVICE,
  transition: ADDRESS_ADVICE,
  reserved: ADDRESS_ADVICE,
};

/** The HTTP response that the browser gets. */
export interface ErrorResponse {
  readonly status: number;
  readonly header: readonly [string, string];
  readonly text: string;
}

export function errorResponse(error: unknown): ErrorResponse {
  if (error instanceof RefusedError)
    return {
      status: 403,
      header: ['x-berth-refused', error.rule],
      text: `Berth refused this request: rule ${error.rule}. ${ADVICE[error.rule]}\n`,
    };
  const kind = error instanceof FailedError ? error.kind : 'bad_answer';
  return { status: STATUSES[kind], header: ['x-berth-failed', kind], text: `${MESSAGES[kind]} (${kind})\n` };
}
