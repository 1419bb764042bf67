import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROCESS_VARIABLE, readConfig } from '../config.ts';
import { listenersOf } from './listeners.ts';

const SETTINGS = { BERTH_LISTEN: '0.0.0.0:8080', BERTH_OPERATOR_LISTEN: '127.0.0.1:9464', BERTH_DATA_DIR: '/data' };

const addressesOf = (settings: Readonly<Record<string, string>>): string[] =>
  listenersOf(readConfig({ ...SETTINGS, ...settings })).map(({ host, port }) => `${host}:${port}`);

test('in each of several processes, listenersOf returns the listeners of all processes', () => {
  const peerSettings = { BERTH_PEER_URL: 'http://10.0.0.5:8100' };
  const operatorAddresses = ['127.0.0.1:9464', '127.0.0.1:9465', '127.0.0.1:9466'];
  const peerAddresses = ['0.0.0.0:8101', '0.0.0.0:8102', '0.0.0.0:8103'];
  for (const position of ['1/3', '2/3', '3/3']) {
    const processSettings = { [PROCESS_VARIABLE]: position };
    assert.deepEqual(
      addressesOf({ ...processSettings, ...peerSettings }),
      ['0.0.0.0:8080', ...operatorAddresses, ...peerAddresses],
      position,
    );
    assert.deepEqual(
      addressesOf(processSettings),
      ['0.0.0.0:8080', ...operatorAddresses],
      'other hosts connect to a socket in a folder',
    );
  }
});

test('a single process has a separate listener for other hosts only if TLS between hosts is configured', () => {
  const peerSettings = { BERTH_PEER_URL: 'https://10.0.0.5:8443' };
  const tlsSettings = { BERTH_TLS_PEER_CERT: '/cert.pem', BERTH_TLS_PEER_KEY: '/key.pem' };
  assert.deepEqual(addressesOf(peerSettings), ['0.0.0.0:8080', '127.0.0.1:9464']);
  assert.deepEqual(addressesOf({ ...peerSettings, ...tlsSettings }), [
    '0.0.0.0:8080',
    '127.0.0.1:9464',
    '0.0.0.0:8443',
  ]);
  assert.deepEqual(addressesOf({ BERTH_OPERATOR_LISTEN: 'off' }), ['0.0.0.0:8080']);
});
