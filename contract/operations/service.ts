// Health and the landing page. Readiness and metrics are served by the operator's listener and are not part of the API.

import { Type } from 'typebox';
import type { Operation } from '../operation.ts';
import { Health, Welcome } from '../service.ts';

export const SERVICE_OPERATIONS = {
  welcome: {
    tag: 'Service',
    method: 'GET',
    path: '/',
    summary: 'Read the welcome message',
    description:
      'Returns the name and version of the service and the address of the reference. Browsers get an HTML page.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'The service.', schema: Welcome, alternativeTypes: { 'text/html': Type.String() } },
    },
    errors: [],
  },
  readHealth: {
    tag: 'Service',
    method: 'GET',
    path: '/healthz',
    summary: 'Health',
    description: 'Succeeds if the process is running.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'The process is running.', schema: Health } },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
