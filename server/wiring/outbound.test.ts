// The server's own requests: the setting that adds certificate authorities, and the addresses that are refused.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../config.ts';
import { parseAddress } from '../engines/egress/address.ts';
import { egressPolicy } from '../engines/egress/policy.ts';
import { systemClock } from '../kit/clock.ts';
import { operatorAddresses } from './operator-addresses.ts';
import { openOutbound } from './outbound.ts';

const openWithCaFile = (file: string) => openOutbound(readConfig({ BERTH_OUTBOUND_CA_FILE: file }), systemClock);

function writeCaFile(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-authorities-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'ca.pem'), text);
  return join(folder, 'ca.pem');
}

test('refuses a certificate authority file that is missing or is not PEM, and names the setting', t => {
  assert.throws(
    () => openWithCaFile('/nonexistent/ca.pem'),
    /BERTH_OUTBOUND_CA_FILE is .* expected a file that can be read/,
  );
  assert.throws(
    () => openWithCaFile(writeCaFile(t, 'no certificate')),
    /BERTH_OUTBOUND_CA_FILE is .* expected a file with cert/,
  );
});

test('refuses and allows addresses by the same rules as for sessions, including the addresses of this machine', async () => {
  const ownAddresses = Object.values(networkInterfaces()).flatMap(
    entries => entries?.map(({ address }) => address) ?? [],
  );
  const seenRules = new Set<string>();
  for (const allow of ['', '127.0.0.0/8', '0.0.0.0/0,::/0']) {
    const config = readConfig({ BERTH_EGRESS_ALLOW: allow });
    const outbound = openOutbound(config, systemClock);
    const sessionPolicy = egressPolicy(operatorAddresses(config, systemClock));
    for (const text of [...ownAddresses, '127.0.0.2', '0.0.0.0', '10.0.0.1', '169.254.169.254', '93.184.216.34'])
      for (const port of [config.listen.port, 9]) {
        const address = parseAddress(text);
        assert.ok(address, text);
        const verdict = sessionPolicy.checkAddress(address, port);
        const refusal = await outbound.check(`https://${text.includes(':') ? `[${text}]` : text}:${port}/`);
        assert.equal(refusal?.rule, verdict.isAllowed ? undefined : verdict.rule, `${text}:${port}, allowed: ${allow}`);
        seenRules.add(refusal?.rule ?? 'allowed');
      }
  }
  for (const rule of ['loopback', 'private', 'metadata', 'own_service', 'own_address', 'allowed'])
    assert.ok(seenRules.has(rule), `no address was refused as ${rule}`);
});
