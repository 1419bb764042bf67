// The job that converts the HTML of a page to Markdown. The conversion is in a separate module, because only worker
// threads load its libraries.
import type { Job } from '../../kit/worker-pool.ts';
import type { MarkdownInput } from './markdown-job.ts';

/** The time limit of a conversion. Parsing and converting the largest document takes a few seconds. */
const CONVERSION_TIMEOUT_MS = 20_000;

export const TO_MARKDOWN: Job<MarkdownInput, string> = {
  name: 'convert a page to Markdown',
  module: new URL('markdown-job.ts', import.meta.url).href,
  limitMs: CONVERSION_TIMEOUT_MS,
  isLong: true,
};
