// Health, metrics and the landing page.

import { Type } from 'typebox';
import type { Operation } from '../operation.ts';
import { Health, Readiness, Welcome } from '../service.ts';

export const SERVICE_OPERATIONS = {
  welcome: {
    tag: 'Service',
    method: 'GET',
    path: '/',
    summary: 'Read the welcome',
    description:
      'Returns the name and version of the service and the address of the reference. Browsers get an HTML page.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'The service.', schema: Welcome, otherTypes: { 'text/html': Type.String() } },
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
  readReadiness: {
    tag: 'Service',
    method: 'GET',
    path: '/readyz',
    summary: 'Readiness',
    description: 'Succeeds if the database responds and browsers can be started.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'Ready.', schema: Readiness },
      503: { description: 'Not ready. The checks say why.', schema: Readiness },
    },
    errors: [],
  },
  readMetrics: {
    tag: 'Service',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics',
    description: 'Returns metrics for Prometheus.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'Text exposition format.', contentType: 'text/plain' } },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
