import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfiguredOperation } from '../../../contract/configured-operations.ts';
import { DraftError, draftOf, EMPTY_DRAFT, problemsOf, requestOf } from './operation-draft.ts';

const OPERATION = {
  ...{ id: 'orders.cancel', kind: 'http', status: 'draft', revision: 2, digest: 'sha256:', title: 'Cancel' },
  ...{ description: 'Cancels an order.', effect: 'irreversible', approval: 'owner', acknowledgeUnattended: true },
  inputSchema: { type: 'object', properties: { orderId: { type: 'string' } } },
  outputSchema: { type: 'object' },
  binding: {
    ...{ method: 'POST', url: 'https://api.shop.example/orders/{orderId}', query: { q: '/orderId' }, sign: true },
    ...{ auth: { credentialId: 'shop-api', as: 'header', header: 'X-Key' }, body: { from: '/' } },
    idempotencyHeader: 'Idempotency-Key',
  },
  ...{ timeoutMs: 2500, retention: { output: 'full', days: 3 }, price: { microCredits: 1500 } },
  ...{ display: { summary: 'Cancel {{input.orderId}}' }, examples: [{ input: { orderId: 'A-1' } }] },
} satisfies ConfiguredOperation as ConfiguredOperation;

const BROWSER_OPERATION = {
  ...OPERATION,
  kind: 'browser',
  binding: { url: 'https://shop.example', steps: [{ do: 'click', selector: '#a' }], allowedDomains: ['shop.example'] },
} as ConfiguredOperation;

for (const operation of [OPERATION, BROWSER_OPERATION])
  test(`draftOf and requestOf convert an operation to a form draft and back without loss: ${operation.kind}`, () => {
    const { id: _, status: __, revision: ___, digest: ____, ...content } = operation;
    assert.deepEqual(requestOf(draftOf(operation)), content);
  });

test('requestOf reports the field, line and offset of invalid JSON', () => {
  const draft = { ...EMPTY_DRAFT, inputSchema: '{\n  "type": object\n}', examples: '{}' };
  assert.throws(
    () => requestOf(draft),
    (error: unknown) => {
      assert.ok(error instanceof DraftError);
      assert.deepEqual(
        error.problems.map(({ field, offset }) => [field, offset]),
        [
          ['inputSchema', 12],
          ['examples', 0],
        ],
      );
      assert.match(error.message, /Line 2 is not valid JSON: expected a value/);
      return true;
    },
  );
});

test('problemsOf assigns API errors to their form fields and to lines within JSON fields', () => {
  const draft = draftOf(OPERATION);
  const problemAt = (path: string) => problemsOf([{ path, message: 'is wrong' }], draft)[0];
  assert.deepEqual(problemAt('binding.auth.credentialId'), { field: 'credentialId', message: 'is wrong' });
  assert.deepEqual(problemAt('binding.auth.header'), { field: 'header', message: 'is wrong' });
  assert.deepEqual(problemAt('binding.body.from'), { field: 'bodyFrom', message: 'is wrong' });
  assert.equal(problemAt('binding.query.q')?.field, 'call');
  assert.equal(problemAt('timeoutMs')?.field, 'seconds');
  assert.equal(problemAt('display.summary')?.field, 'settings');
  assert.deepEqual(problemAt('something'), { message: 'something is wrong' });
  const schemaProblem = problemAt('inputSchema.properties.orderId.type');
  assert.equal(schemaProblem?.message, 'Line 5: properties.orderId.type is wrong');
  assert.ok(draft.inputSchema.slice(schemaProblem?.offset).startsWith('"string"'));
  const exampleProblem = problemAt('examples[0].input.orderId');
  assert.ok(draft.examples.slice(exampleProblem?.offset).startsWith('"A-1"'));
  const browserDraft = draftOf(BROWSER_OPERATION);
  const [step] = problemsOf([{ path: 'binding.steps.0.selector', message: 'is wrong' }], browserDraft);
  assert.equal(step?.field, 'steps');
  assert.ok(browserDraft.steps.slice(step?.offset).startsWith('"#a"'));
});
