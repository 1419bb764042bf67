// The wiring of certificates: uploads, and the watcher that makes browsers trust them.
import { Certificates } from '../domain/certificates/certificates.ts';
import { trustWatcher } from '../domain/certificates/trust.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export const openCertificates = ({ clock }: Runtime, { store, workers }: Foundation) => ({
  service: new Certificates({ rows: store.certificates, workers, clock }),
  watcher: trustWatcher(store.certificates),
});
