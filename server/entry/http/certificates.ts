// HTTP handlers for certificates.
import { readFile } from 'node:fs/promises';
import type { Certificates } from '../../domain/certificates/certificates.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export type CertificateMethods = Pick<Certificates, 'upload' | 'list' | 'read' | 'remove'>;

export const certificateHandlers = (certificates: CertificateMethods) => ({
  uploadCertificate: async ({ caller, file }: HandlerInput<'uploadCertificate'>): Promise<HttpResponse> =>
    jsonResponse(await certificates.upload(caller, await readFile(file.path))),

  listCertificates: async ({ caller }: HandlerInput<'listCertificates'>): Promise<HttpResponse> =>
    jsonResponse(await certificates.list(caller)),

  readCertificate: async ({ caller, params }: HandlerInput<'readCertificate'>): Promise<HttpResponse> =>
    jsonResponse(await certificates.read(caller, params.id)),

  deleteCertificate: async ({ caller, params }: HandlerInput<'deleteCertificate'>): Promise<HttpResponse> => {
    await certificates.remove(caller, params.id);
    return emptyResponse();
  },
});
