// The wiring of the documents in which the service describes itself to clients.
import { PASSWORD_CHARACTERS_MIN, SIGN_IN_METHODS } from '../../contract/sign-in.ts';
import { type ServiceDocuments, serviceDocuments } from '../domain/config/service-documents.ts';
import { version } from '../version.ts';
import type { Foundation } from './foundation.ts';

export const openServiceDocuments = ({
  config: { publicUrl, regions, registration },
}: Pick<Foundation, 'config'>): ServiceDocuments =>
  serviceDocuments({
    ...{ publicUrl, regions, version: version() },
    signIn: { methods: SIGN_IN_METHODS, registration, minPasswordLength: PASSWORD_CHARACTERS_MIN },
  });
