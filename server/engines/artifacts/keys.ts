// Creates the keys of all artifacts; no other file does. A key begins with the application and the resource, so that
// the artifacts of a session or an application can be listed by prefix. A key is a safe relative path on any disk.
import type { ApplicationId, SessionId } from '../../kit/ids.ts';

export type ArtifactKey = string & { readonly kind: 'artifact key' };
export type ArtifactPrefix = string & { readonly kind: 'artifact prefix' };

/** The folders in which an application has files. For each, a family removes the files that are due (`Family`). */
export type ArtifactFolder = 'sessions' | 'contexts' | 'extensions' | 'invocations';

const PART = /^[a-z0-9][a-z0-9-]{0,127}(\.[a-z0-9]{1,8})?$/;

/** Parts are ids, numbers and checksums. Names that a caller or a page has chosen are never part of a key. */
function joinParts(...parts: Parts): string {
  const invalidPart = parts.find(part => !PART.test(String(part)));
  if (invalidPart !== undefined) throw new Error(`${JSON.stringify(invalidPart)} cannot be part of an artifact key`);
  return parts.join('/');
}

type App = ApplicationId;
type Session = SessionId;
type Parts = readonly (string | number)[];

const key = (app: App, folder: ArtifactFolder, ...parts: Parts): ArtifactKey =>
  joinParts(app, folder, ...parts) as ArtifactKey;
const prefix = (app: App, folder: ArtifactFolder, ...parts: Parts): ArtifactPrefix =>
  `${joinParts(app, folder, ...parts)}/` as ArtifactPrefix;

/** Validates a key from a row or a listing. */
export function asKey(text: string): ArtifactKey {
  return joinParts(...text.split('/')) as ArtifactKey;
}

/** The key of an object that marks the storage, so that hosts can check whether they use the same storage. */
export const storageMarkKey: ArtifactKey = joinParts('berth', 'storage-mark') as ArtifactKey;

export const sessionPrefix = (app: App, session: Session): ArtifactPrefix => prefix(app, 'sessions', session);

export const downloadKey = (app: App, session: Session, download: string): ArtifactKey =>
  key(app, 'sessions', session, 'downloads', download);

export const recordingPrefix = (app: App, session: Session): ArtifactPrefix =>
  prefix(app, 'sessions', session, 'recording');

/** The init segment that all segments of a page with the same frame size share. */
export const recordingInitKey = (app: App, session: Session, page: number, run: number): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `init-${run}.mp4`);

export const recordingSegmentKey = (app: App, session: Session, page: number, segment: number): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `${segment}.m4s`);

/** The MP4 file of a page. Each assembly has its own id, so that links to an earlier file keep working. */
export const recordingFileKey = (app: App, session: Session, page: number, assembly: string): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `${assembly}.mp4`);

/** The last picture of a recorded session. */
export const pictureKey = (app: App, session: Session): ArtifactKey => key(app, 'sessions', session, 'picture.jpg');

export const contextVersionKey = (app: App, context: string, version: string): ArtifactKey =>
  key(app, 'contexts', context, version);

export const contextCookiesKey = (app: App, context: string, version: string): ArtifactKey =>
  key(app, 'contexts', context, `${version}.cookies`);

/** The bytes of an extension are stored once for each application, even if they are uploaded several times. */
export const extensionKey = (app: App, checksum: string): ArtifactKey => key(app, 'extensions', checksum);

/** A file that an invocation of an operation produced. */
export const invocationKey = (app: App, invocation: string): ArtifactKey => key(app, 'invocations', invocation);
