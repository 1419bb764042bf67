// Errors for refused sign-ins of consumers. They reveal nothing about a consumer: `invalid_grant` does not say which of its
// causes applies.
import { fault } from '../faults.ts';

export const invalidGrant = (problem: string, advice = 'Start a new sign-in with session.start.'): Error =>
  fault(
    'invalid_grant',
    `The ${problem} is not valid: it is unknown or expired, was already used, or was issued for another application or sign-in.`,
    {
      advice,
    },
  );

export const providerDisabled = (provider: string, path = '/identity/providers/{providerId}'): Error =>
  fault('feature_unavailable', `Consumer sign-in with ${provider} is not enabled in this application.`, {
    advice: `An admin of the application can enable it with PUT /v1/applications/{appId}${path}.`,
    details: { field: 'providerId' },
  });

export const methodDisabled = (method: string): Error =>
  fault('feature_unavailable', `Consumer sign-in with the method ${method} is not enabled in this application.`, {
    advice: 'Use one of the methods that hosted.describe returns.',
    details: { field: 'method' },
  });
