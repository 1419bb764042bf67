// Why a request did not go out: refused by a rule, or not possible. The text names the rule or the kind of failure,
// never an answer from inside (no address, no error text of the machine).
import type { HostRule } from './host-rules.ts';
import type { AddressRule } from './rules.ts';

export type RefusalRule = AddressRule | HostRule | 'too_many_connections';

export class Refused extends Error {
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
  | ProxyTrouble;

/** What can be wrong with a proxy between us and the host, whichever host was asked for. */
export type ProxyTrouble =
  | 'proxy_unreachable'
  | 'proxy_timed_out'
  | 'proxy_not_trusted'
  | 'proxy_refused_user'
  | 'proxy_is_none';

const STATUS: Readonly<Record<FailureKind, number>> = {
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
  proxy_is_none: 502,
};

const WORDS: Readonly<Record<FailureKind, string>> = {
  bad_request: 'This is the egress proxy of a browser session; the request is none that a proxy can serve.',
  name_not_resolved: 'The host name could not be resolved.',
  name_timed_out: 'The name servers did not answer in time.',
  connect_failed: 'The host did not accept the connection.',
  connect_timed_out: 'The host did not answer in time.',
  bad_answer: 'The host broke off, or sent what is not an HTTP answer.',
  host_not_reached: "The session's proxy could not reach the host.",
  proxy_unreachable: "The session's proxy cannot be reached, or does not speak as a proxy does.",
  proxy_timed_out: "The session's proxy did not answer in time.",
  proxy_not_trusted: "The certificate of the session's proxy is not trusted.",
  proxy_refused_user: "The session's proxy refused the user name or the password.",
  proxy_is_none: "What stands at the address of the session's proxy is no proxy.",
};

export class Failed extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, cause?: unknown) {
    super(WORDS[kind], { cause });
    this.name = 'Failed';
    this.kind = kind;
  }
}

/** A proxy of the session does not serve it; `proxy` is its name, never its address. */
export class ProxyFailed extends Failed {
  readonly trouble: ProxyTrouble;
  readonly proxy: string;

  constructor(trouble: ProxyTrouble, proxy: string, cause?: unknown) {
    super(trouble, cause);
    this.name = 'ProxyFailed';
    this.trouble = trouble;
    this.proxy = proxy;
  }
}

const ADVICE: Readonly<Partial<Record<RefusalRule, string>>> = {
  own_service: 'A session reaches the service by its own connectUrl, and by nothing else.',
  own_address:
    'It is an address of the machine that runs Berth. The operator can open that very address with BERTH_EGRESS_ALLOW.',
  network_policy: 'The networkPolicy of the session says which hosts it may reach.',
  ad: 'The session was created with blockAds.',
  no_session: 'The browser belongs to no session yet.',
  egress_limit: 'The session has used up its egressBytes.',
};

const adviceOn = (rule: RefusalRule): string =>
  ADVICE[rule] ?? 'The operator can open addresses with BERTH_EGRESS_ALLOW.';

/** What the browser is told. */
export interface Answer {
  readonly status: number;
  readonly header: readonly [string, string];
  readonly text: string;
}

export function answerTo(error: unknown): Answer {
  if (error instanceof Refused)
    return {
      status: 403,
      header: ['x-berth-refused', error.rule],
      text: `Berth refused this request: rule ${error.rule}. ${adviceOn(error.rule)}\n`,
    };
  const kind = error instanceof Failed ? error.kind : 'bad_answer';
  return { status: STATUS[kind], header: ['x-berth-failed', kind], text: `${WORDS[kind]} (${kind})\n` };
}
