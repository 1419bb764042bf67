// The documents in which the service describes itself to clients.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuthorizationServer, ServiceConfig } from '../../contract/config.ts';
import { DEVICE_GRANT_TYPE, type StartedDevice } from '../../contract/device.ts';
import { startServer } from '../harness/server.ts';

const server = await startServer();

const CONFIG_PATH = '/v1/config';
const METADATA_PATH = '/.well-known/oauth-authorization-server';

const read = <Body>(path: string, headers = {}) => server.api<Body>('GET', path, { key: null, headers });

test('the configuration, the OAuth metadata and the response to a device authorization request are consistent', async () => {
  const { body: config } = await read<ServiceConfig>(CONFIG_PATH);
  const { body: metadata } = await read<AuthorizationServer>(METADATA_PATH);
  assert.equal(config.issuer, server.url);
  assert.equal(metadata.issuer, config.issuer);
  assert.equal(metadata.device_authorization_endpoint, config.device.authorizationUrl);
  assert.equal(metadata.token_endpoint, config.device.tokenUrl);
  assert.deepEqual(metadata.grant_types_supported, [DEVICE_GRANT_TYPE]);
  assert.equal((await read(new URL(metadata.jwks_uri).pathname)).status, 200);
  assert.equal(metadata.service_documentation, config.docsUrl);
  const path = new URL(config.device.authorizationUrl).pathname;
  const { body: started } = await server.api<StartedDevice>('POST', path, { key: null, body: { client_id: 'x' } });
  assert.equal(started.verification_uri, config.device.verificationUri);
  assert.deepEqual([started.interval, started.expires_in], [config.device.interval, config.device.expiresIn]);
  for (const url of [metadata.token_endpoint, metadata.revocation_endpoint])
    assert.equal((await server.api('POST', new URL(url).pathname, { key: null, body: {} })).status, 400, url);
});

for (const path of [CONFIG_PATH, METADATA_PATH])
  test(`${path} can be cached for a minute, and read by pages of any origin`, async () => {
    const { status, headers } = await read(path, { origin: 'https://elsewhere.example' });
    assert.equal(status, 200);
    assert.equal(headers['cache-control'], 'public, max-age=60');
    assert.equal(headers['access-control-allow-origin'], '*');
    const { etag } = headers;
    assert.ok(etag);
    const secondResponse = await read(path, { 'if-none-match': etag });
    assert.deepEqual([secondResponse.status, secondResponse.text, secondResponse.headers.etag], [304, '', etag]);
    assert.equal((await read(path, { 'if-none-match': '"other"' })).status, 200);
  });

test('the configuration and the OAuth metadata have exactly the fields that the contract requires', async () => {
  for (const [path, { required }] of [
    [CONFIG_PATH, ServiceConfig],
    [METADATA_PATH, AuthorizationServer],
  ] as const) {
    const { body } = await read<object>(path);
    assert.deepEqual(Object.keys(body).sort(), [...required].sort(), path);
  }
});
