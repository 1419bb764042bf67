// The wiring of operations that applications configure, and of their HTTP calls.
import { Catalogue } from '../domain/configured-operations/callable.ts';
import { ConfiguredOperations } from '../domain/configured-operations/configured-operations.ts';
import { HttpOperations } from '../domain/configured-operations/http-operations.ts';
import { fault } from '../domain/faults.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { CallCredentials } from '../domain/stored-credentials/call-credentials.ts';
import type { TypedCredentials } from '../domain/stored-credentials/typed-credentials.ts';
import { COMPILE, READ_RESPONSE } from '../engines/schemas/jobs.ts';
import type { Runtime } from '../kit/runtime.ts';
import { WorkFailed } from '../kit/worker-pool.ts';
import type { Foundation } from './foundation.ts';
import { validateIn } from './validate.ts';

export interface ConfiguredOperationsDeps {
  readonly applications: Pick<Applications, 'require'>;
  readonly credentials: CallCredentials;
  readonly typedCredentials: TypedCredentials;
}

export function openConfiguredOperations(
  { clock, log }: Runtime,
  { store, audit, secret, workers, outbound, signingKeys }: Foundation,
  { applications, credentials, typedCredentials }: ConfiguredOperationsDeps,
) {
  const compile = async (schemas: Readonly<Record<string, object>>, jobOwner: string) => {
    try {
      const { path, message } = await workers.run(COMPILE, { schemas }, { owner: jobOwner });
      return path === undefined ? undefined : { path, message };
    } catch (error) {
      if (!(error instanceof WorkFailed)) throw error;
      if (error.why === 'too_many' || error.why === 'closed') throw busyFault();
      return { path: Object.keys(schemas).join(', '), message: TOO_SLOW_MESSAGE };
    }
  };
  return {
    service: new ConfiguredOperations({
      ...{ store, applications, audit, credentials, typedCredentials, outbound, compile, clock },
      validate: validateIn(workers),
      cursors: new Cursors(secret, clock),
    }),
    catalogue: new Catalogue(store.configuredOperations),
    http: new HttpOperations({
      ...{ outbound, credentials, clock, log },
      readResponse: (input, jobOwner) => workers.run(READ_RESPONSE, input, { owner: jobOwner }),
      signer: () => signingKeys.messageSigner(),
    }),
    tasks: [],
  };
}

const TOO_SLOW_MESSAGE =
  'takes too long to compile or to apply, for example because a pattern has nested repetitions, such as (a+)+';

const busyFault = (): Error =>
  fault('busy', 'Too many schemas are being compiled.', { advice: 'Send the request again in a few seconds.' });
