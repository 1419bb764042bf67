// Labels for hand-offs, for the list of waiting items and for the page of a hand-off.
import type { ConsumerHandoff } from '../../contract/consumer-handoffs.ts';

/** What the agent asks for. */
export const REASON_WORDS: Readonly<Record<ConsumerHandoff['reason'], string>> = {
  login: 'Sign in for an agent',
  otp: 'Enter a code for an agent',
  captcha: 'Solve a captcha for an agent',
  payment: 'Make a payment in an agent\u2019s browser',
  consent: 'Give consent in an agent\u2019s browser',
  review: 'Review something for an agent',
  other: 'Help an agent in its browser',
};

export const STATUS_WORDS: Readonly<Record<ConsumerHandoff['status'], string>> = {
  requested: 'waiting for you',
  claimed: 'you have control',
  completed: 'done',
  declined: 'declined',
  failed: 'it was not possible',
  cancelled: 'withdrawn',
  expired: 'expired',
  session_ended: 'the browser was closed',
};

export const isOpen = ({ status }: ConsumerHandoff): boolean => status === 'requested' || status === 'claimed';
