import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Totals } from './totals.ts';

describe('Totals', () => {
  const bounds = { session: 10, application: 15, process: 20 };

  it('accepts an amount if every level has room, and otherwise returns the level that is full', () => {
    const totals = new Totals(bounds);
    const one = totals.open({ application: 'a', session: '1' });
    assert.equal(one.take(8), undefined);
    assert.equal(totals.open({ application: 'a', session: '1' }).take(3)?.kind, 'session');
    assert.equal(totals.open({ application: 'a', session: '2' }).take(8)?.kind, 'application');
    assert.equal(totals.open({ application: 'a', session: '2' }).take(7), undefined);
    assert.equal(totals.open({ application: 'b' }).take(6)?.kind, 'process');
    one.close();
    assert.equal(totals.open({ application: 'b' }).take(6), undefined);
  });

  it('accepts one amount above a bound if there is no other amount, and refuses all further amounts', () => {
    const totals = new Totals(bounds);
    assert.equal(totals.open({ application: 'a', session: '1' }).take(100), undefined);
    assert.equal(totals.open({ application: 'a', session: '1' }).take(1)?.kind, 'session');
    assert.equal(totals.open({ application: 'b', session: '2' }).take(1)?.kind, 'process');
  });

  it('applies a stricter bound that is passed with the call', () => {
    const totals = new Totals(bounds);
    assert.equal(totals.open({ application: 'a', session: '1' }).take(3, { session: 5 }), undefined);
    assert.equal(totals.open({ application: 'a', session: '1' }).take(3, { session: 5 })?.kind, 'session');
  });
});
