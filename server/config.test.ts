import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from './config.ts';
import { BadConfig } from './kit/environment.ts';

function complaintsOf(variables: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(variables);
  } catch (error) {
    assert.ok(error instanceof BadConfig);
    return error.message.split('\n');
  }
  return [];
}

test('uses the defaults if the environment is empty', () => {
  const { listen, publicUrl, regions, s3, tls } = readConfig({});
  assert.deepEqual([listen, publicUrl], [{ host: '127.0.0.1', port: 8080 }, 'http://127.0.0.1:8080']);
  assert.deepEqual([regions, s3, tls], [['local'], undefined, undefined]);
});

test('reports all invalid values in one error', () => {
  const complaints = complaintsOf({
    BERTH_LISTEN: 'nowhere',
    BERTH_SLOTS: 'many',
    BERTH_LOG_LEVEL: 'loud',
    BERTH_EGRESS_ALLOW: '10.0.0.0/8,10.0.0.0/99',
    BERTH_TLS_CERT: 'cert.pem',
    DATABASE_URL: 'mysql://user:password@host/name',
  });
  assert.deepEqual(complaints, [
    'BERTH_LISTEN is "nowhere"; expected HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080.',
    'DATABASE_URL is "***"; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE.',
    'BERTH_TLS_KEY is ""; expected the key file that belongs to BERTH_TLS_CERT.',
    'BERTH_SLOTS is "many"; expected a whole number from 0 to 1000.',
    'BERTH_EGRESS_ALLOW is "10.0.0.0/99"; expected ADDRESS[/PREFIX][:PORT], for example 127.0.0.1/32:9100 or 10.0.0.0/8.',
    'BERTH_LOG_LEVEL is "loud"; expected one of debug, info, warn, error, silent.',
  ]);
});

test('TLS between hosts requires an https peer address with a port of its own', () => {
  const files = { BERTH_TLS_PEER_CERT: 'cert.pem', BERTH_TLS_PEER_KEY: 'key.pem' };
  const peerUrlPattern =
    /^BERTH_PEER_URL is ".*"; expected an https address of this host with a port other than that of BERTH_LISTEN/;
  for (const url of [undefined, 'http://10.0.0.11:8443', 'https://10.0.0.11:8080'])
    assert.match(complaintsOf({ ...files, ...(url ? { BERTH_PEER_URL: url } : {}) }).join(), peerUrlPattern);
  assert.deepEqual(complaintsOf({ ...files, BERTH_PEER_URL: 'https://10.0.0.11:8443' }), []);
  const { peerTls } = readConfig({ BERTH_TLS_PEER_CA: '/ca.pem' });
  assert.deepEqual(peerTls, { caFile: '/ca.pem' });
});

test('refuses a public address that contains a password, and does not show the password', () => {
  for (const url of [
    'https://:secret@browsers.example',
    'https://user:secret@browsers.example',
    'https://user:secret@browsers.example:99999', // not a valid URL, because the port is above 65535
  ])
    assert.deepEqual(complaintsOf({ BERTH_PUBLIC_URL: url }), [
      'BERTH_PUBLIC_URL is "***"; expected an http or https URL without user, query or fragment, for example https://browsers.example.',
    ]);
});

test('rejects an unknown BERTH_ variable, and suggests the most similar name', () => {
  assert.deepEqual(complaintsOf({ BERTH_SLOT: '4', BERTH_EGRES_ALLOW: '10.0.0.0/8' }), [
    'BERTH_SLOT is not a setting; did you mean BERTH_SLOTS? Correct the name, or unset the variable.',
    'BERTH_EGRES_ALLOW is not a setting; did you mean BERTH_EGRESS_ALLOW? Correct the name, or unset the variable.',
  ]);
});

test('accepts the environment variables of API clients', () => {
  assert.deepEqual(complaintsOf({ BERTH_KEY: 'key', BERTH_TOKEN: 'token', BERTH_URL: 'http://127.0.0.1:8080' }), []);
});

test('accepts one or more 32-byte master keys, rejects a key combined with BERTH_MASTER_KEY_COMMAND, and shows no key in errors', () => {
  const [hex, base64] = ['ab'.repeat(32), Buffer.alloc(32, 7).toString('base64')];
  for (const key of [hex, base64, `${hex},${base64}`]) assert.deepEqual(complaintsOf({ BERTH_MASTER_KEY: key }), []);
  for (const key of ['secret', hex.slice(1), `${hex},`, `${hex} ${hex}`])
    assert.match(complaintsOf({ BERTH_MASTER_KEY: key }).join(), /^BERTH_MASTER_KEY is "\*\*\*"; expected 64 hex/);
  const complaints = complaintsOf({ BERTH_MASTER_KEY: hex, BERTH_MASTER_KEY_COMMAND: 'cat key' });
  assert.match(complaints.join(), /BERTH_MASTER_KEY_COMMAND/);
});

test('does not include secrets in an error', () => {
  const [complaint = ''] = complaintsOf({ BERTH_SECRET: 'too short' });
  assert.match(complaint, /^BERTH_SECRET is "\*\*\*"; expected at least 32 characters/);
});

test('refuses headers for the OpenTelemetry collector that are not percent-encoded, and does not show them', () => {
  const headerComplaintsOf = (value: string) =>
    complaintsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_EXPORTER_OTLP_HEADERS: value });
  assert.deepEqual(headerComplaintsOf('x-tenant=berth,authorization=Basic%20100%25'), []);
  assert.deepEqual(headerComplaintsOf('authorization=Basic 100%'), [
    'OTEL_EXPORTER_OTLP_HEADERS is "***"; expected name=value pairs, separated by commas and percent-encoded (% is %25).',
  ]);
});
