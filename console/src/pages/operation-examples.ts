// Examples for new operations.
import { EMPTY_DRAFT, formatJson, type OperationDraft } from './operation-draft.ts';

const textSchema = (keywords: object = {}) => ({ type: 'string', maxLength: 200, ...keywords });
const inputSchemaOf = (properties: object): string =>
  formatJson({ type: 'object', required: Object.keys(properties), properties, additionalProperties: false });

export interface OperationExample {
  readonly name: string;
  readonly about: string;
  readonly id: string;
  readonly draft: OperationDraft;
}

export const EXAMPLES: readonly OperationExample[] = [
  {
    name: 'Read from an API',
    about: 'A GET request. The input fills in a part of the address.',
    id: 'orders.read',
    draft: {
      ...EMPTY_DRAFT,
      ...{ title: 'Read an order', description: 'Returns the state of an order.' },
      url: 'https://api.shop.example/orders/{orderId}',
      inputSchema: inputSchemaOf({ orderId: textSchema() }),
      examples: formatJson([{ orderId: 'A-1007' }]),
    },
  },
  {
    name: 'Change something through an API',
    about: 'A POST request with a JSON body, sent at most once.',
    id: 'orders.cancel',
    draft: {
      ...EMPTY_DRAFT,
      ...{ title: 'Cancel an order', description: 'Cancels an order that has not shipped.', effect: 'write' },
      ...{ method: 'POST', url: 'https://api.shop.example/orders/{orderId}/cancel', bodyFrom: '/' },
      idempotencyHeader: 'Idempotency-Key',
      inputSchema: inputSchemaOf({ orderId: textSchema(), reason: textSchema() }),
      examples: formatJson([{ orderId: 'A-1007', reason: 'ordered twice' }]),
    },
  },
  {
    name: 'Read a page',
    about: 'Opens a page in a browser and returns some of its values.',
    id: 'prices.read',
    draft: {
      ...EMPTY_DRAFT,
      ...{ kind: 'browser', title: 'Read a price', description: 'Returns the name and price of a product.' },
      url: 'https://shop.example/products/{product}',
      steps: formatJson([
        { do: 'waitFor', selector: 'h1' },
        { do: 'extract', fields: { name: { selector: 'h1' }, price: { selector: '.price' } } },
      ]),
      inputSchema: inputSchemaOf({ product: textSchema() }),
      examples: formatJson([{ product: 'lamp' }]),
    },
  },
  {
    name: 'Fill in a form',
    about: 'Opens a page in a browser, fills in a form with the input and submits it.',
    id: 'tickets.open',
    draft: {
      ...EMPTY_DRAFT,
      ...{ kind: 'browser', title: 'Open a ticket', description: 'Opens a ticket and returns its number.' },
      ...{ effect: 'write', url: 'https://help.example/new', seconds: '60' },
      steps: formatJson([
        { do: 'fill', selector: '#subject', value: { from: '/subject' } },
        { do: 'fill', selector: '#text', value: { from: '/text' } },
        { do: 'click', selector: 'button[type=submit]' },
        { do: 'waitFor', selector: '.ticket-number' },
        { do: 'extract', fields: { number: { selector: '.ticket-number' } } },
      ]),
      inputSchema: inputSchemaOf({ subject: textSchema(), text: textSchema({ maxLength: 5000 }) }),
      examples: formatJson([{ subject: 'The lamp is broken', text: 'It does not light up.' }]),
    },
  },
];
