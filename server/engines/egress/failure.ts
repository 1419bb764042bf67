// Why a request did not go out: refused by a rule, or not possible. The text names the rule or the kind of failure,
// never an answer from inside (no address, no error text of the machine).
import type { AddressRule } from './rules.ts';

export type RefusalRule = AddressRule | 'too_many_connections';

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
  | 'bad_answer';

const STATUS: Readonly<Record<FailureKind, number>> = {
  bad_request: 400,
  name_not_resolved: 502,
  name_timed_out: 504,
  connect_failed: 502,
  connect_timed_out: 504,
  bad_answer: 502,
};

const WORDS: Readonly<Record<FailureKind, string>> = {
  bad_request: 'This is the egress proxy of a browser session; the request is none that a proxy can serve.',
  name_not_resolved: 'The host name could not be resolved.',
  name_timed_out: 'The name servers did not answer in time.',
  connect_failed: 'The host did not accept the connection.',
  connect_timed_out: 'The host did not answer in time.',
  bad_answer: 'The host broke off, or sent what is not an HTTP answer.',
};

export class Failed extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, cause?: unknown) {
    super(WORDS[kind], { cause });
    this.name = 'Failed';
    this.kind = kind;
  }
}

const adviceOn = (rule: RefusalRule): string =>
  rule === 'own_service'
    ? 'A session reaches the service by its own connectUrl, and by nothing else.'
    : 'The operator can open addresses with BERTH_EGRESS_ALLOW.';

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
