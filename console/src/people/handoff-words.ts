// Labels for hand-offs, for the page of a hand-off and for the inbox.
import type { Handoff } from '../../../contract/handoffs.ts';

/** The same value as INSTRUCTIONS_SHOWN_CHARACTERS_MAX in contract/handoffs.ts. */
const AGENT_TEXT_CHARACTERS_MAX = 280;
/** These characters would change the order in which text is displayed. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Prepares the text of an agent for display. */
export const withoutBidi = (text: string): string => text.replace(BIDI, '');

/** Prepares the text of an agent for display to a person who has not taken control. */
export const agentText = (text: string): string => withoutBidi(text).slice(0, AGENT_TEXT_CHARACTERS_MAX);

export const HANDOFF_REASON_WORDS: Readonly<Record<Handoff['reason'], string>> = {
  login: 'Sign in',
  otp: 'Enter a code',
  captcha: 'Solve a captcha',
  payment: 'Make a payment',
  consent: 'Give consent',
  review: 'Look something over',
  other: 'Help an agent',
};

export const HANDOFF_RECORD_WORDS: Readonly<Record<Handoff['record'], string>> = {
  mask: 'What you do is hidden from the recording and from the agent.',
  pause: 'Nothing is recorded, and the agent cannot read the page.',
  keep: 'What you do is recorded, and the agent can read the page.',
};
