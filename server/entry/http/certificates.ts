// HTTP handlers for certificates.
import { readFile } from 'node:fs/promises';
import type { Certificates } from '../../domain/certificates/certificates.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';

export type CertificateVerbs = Pick<Certificates, 'upload' | 'list' | 'read' | 'remove'>;

export const certificateHandlers = (certificates: CertificateVerbs) => ({
  uploadCertificate: async ({ caller, file }: In<'uploadCertificate'>): Promise<Answer> =>
    answer(await certificates.upload(caller, await readFile(file.path))),

  listCertificates: async ({ caller }: In<'listCertificates'>): Promise<Answer> =>
    answer(await certificates.list(caller)),

  readCertificate: async ({ caller, params }: In<'readCertificate'>): Promise<Answer> =>
    answer(await certificates.read(caller, params.id)),

  deleteCertificate: async ({ caller, params }: In<'deleteCertificate'>): Promise<Answer> => {
    await certificates.remove(caller, params.id);
    return nothing();
  },
});
