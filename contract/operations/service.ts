// Health, metrics and the welcome.

import { Type } from 'typebox';
import type { Operation } from '../operation.ts';
import { Health, Readiness, Welcome } from '../service.ts';

export const SERVICE_OPERATIONS = {
  welcome: {
    tag: 'Service',
    method: 'GET',
    path: '/',
    summary: 'Where you are',
    description: 'Name, version and where the reference is. A browser gets a page.',
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
    description: 'The process lives.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'It does.', schema: Health } },
    errors: [],
  },
  readReadiness: {
    tag: 'Service',
    method: 'GET',
    path: '/readyz',
    summary: 'Readiness',
    description: 'The database answers and browsers can be started.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: {
      200: { description: 'Ready.', schema: Readiness },
      503: { description: 'Not ready; the checks say why.', schema: Readiness },
    },
    errors: [],
  },
  readMetrics: {
    tag: 'Service',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics',
    description: 'For Prometheus.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    responses: { 200: { description: 'Text exposition format.', contentType: 'text/plain' } },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
