// Browser extensions that sessions can load.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const EXTENSIONS_PER_SESSION_MAX = 10;
export const EXTENSIONS_PER_APPLICATION_MAX = 1000;
export const EXTENSION_UPLOAD_BYTES_MAX = 100 * 1024 ** 2;

export const Extension = Type.Object(
  {
    id: Uuid('The upload: name it in `extensionIds`.'),
    createdAt: Time('When it was uploaded.'),
    updatedAt: Time('The same: an upload does not change.'),
    fileName: Type.String({ description: 'As it was uploaded.' }),
    projectId: Uuid('The application it belongs to.'),
    name: Type.String({ description: 'From its manifest.' }),
    version: Type.String({ description: 'From its manifest.' }),
    manifestVersion: Type.Integer({ description: 'Always 3: Chromium runs no older ones.' }),
    size: Type.Integer({ description: 'Bytes of the upload.' }),
    checksum: Type.String({ description: 'SHA-256 of the upload, hexadecimal.' }),
  },
  { description: 'A browser extension that was uploaded.' },
);
export type Extension = Static<typeof Extension>;

export const ExtensionParams = Type.Object({ id: Uuid('The extension.') });
