// Browser extensions that sessions can load.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const EXTENSIONS_PER_SESSION_MAX = 10;
export const EXTENSIONS_PER_APPLICATION_MAX = 1000;
export const EXTENSION_UPLOAD_BYTES_MAX = 100 * 1024 ** 2;

export const Extension = Type.Object(
  {
    id: Uuid('Id of the extension, for use in `extensionIds`.'),
    createdAt: Time('When the extension was uploaded.'),
    updatedAt: Time('Equal to `createdAt`: uploads do not change.'),
    fileName: Type.String({ description: 'File name of the upload.' }),
    projectId: Uuid('Id of the application that the extension belongs to.'),
    name: Type.String({ description: 'Name in the manifest.' }),
    version: Type.String({ description: 'Version in the manifest.' }),
    manifestVersion: Type.Integer({ description: 'Always 3: Chromium does not run older manifest versions.' }),
    size: Type.Integer({ description: 'Size of the upload, in bytes.' }),
    checksum: Type.String({ description: 'SHA-256 of the upload, in hexadecimal.' }),
  },
  { description: 'An uploaded browser extension.' },
);
export type Extension = Static<typeof Extension>;

export const ExtensionParams = Type.Object({ id: Uuid('Id of the extension.') });
