// Validates HAR files with the JSON schemas of HAR 1.2, and with the rules for imports in Chrome DevTools.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { isIPv4, isIPv6 } from 'node:net';
import { Ajv } from 'ajv';

const require = createRequire(import.meta.url);

export interface HarFile {
  readonly log: {
    readonly version: string;
    readonly creator: { readonly name: string; readonly version: string };
    readonly pages: readonly HarPage[];
    readonly entries: readonly HarRecord[];
  };
}

export interface HarPage {
  readonly id: string;
  readonly title: string;
  readonly startedDateTime: string;
  readonly pageTimings: { readonly onLoad: number };
}

export interface HarRecord {
  readonly pageref?: string;
  readonly startedDateTime: string;
  readonly time: number;
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: readonly { readonly name: string; readonly value: string }[];
  };
  readonly response: {
    readonly status: number;
    readonly redirectURL: string;
    readonly content: { readonly size: number; readonly mimeType: string };
    readonly headers: readonly { readonly name: string; readonly value: string }[];
    readonly _transferSize: number;
    readonly _error: string | null;
  };
  readonly timings: Readonly<Record<string, number>>;
  readonly _resourceType: string;
  readonly _fromCache?: string;
  readonly _webSocketMessages?: readonly unknown[];
}

const schemas: Readonly<Record<string, object>> = require('har-schema');
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  ipv4: isIPv4,
  ipv6: isIPv6,
  uri: text => URL.canParse(text) && !/[\s"<>[\]{}|\\^`]/.test(text.replace(/^\w+:\/\/\[[^\]]*\]/, '')),
  'date-time': text => !Number.isNaN(Date.parse(text)),
};
const ajv = new Ajv({ strict: false, formats: FORMATS });
ajv.addMetaSchema(require('ajv/dist/refs/json-schema-draft-06.json'));
for (const schema of Object.values(schemas)) ajv.addSchema(schema);
const validate = ajv.compile({ $ref: 'har.json#' });

/** Asserts that the value is a HAR file that DevTools imports with times, types and pages. */
export function assertHar(value: unknown): HarFile {
  assert.ok(validate(value), JSON.stringify(validate.errors));
  const har = value as HarFile;
  const pages = new Set(har.log.pages.map(({ id }) => id));
  assert.equal(pages.size, har.log.pages.length, 'the ids of pages must be unique');
  for (const entry of har.log.entries) {
    const { pageref, startedDateTime, time, timings, request, _resourceType } = entry;
    assert.ok(pageref === undefined || pages.has(pageref), `the page ${pageref} of ${request.url} is not in the file`);
    assert.equal(new Date(startedDateTime).toISOString(), startedDateTime);
    assert.match(_resourceType, /^[a-z]+$/);
    const { blocked = -1, dns = -1, connect = -1, send = 0, wait = 0, receive = 0, ssl = -1 } = timings;
    const sum = [blocked, dns, connect, send, wait, receive].reduce((all, part) => all + Math.max(0, part), 0);
    assert.ok(Math.abs(sum - time) < 0.01, `the steps of ${request.url} take ${sum}, the whole ${time}`);
    assert.ok(ssl <= connect, 'the time of connect must include that of ssl');
  }
  return har;
}
