// Makes every key of every artifact; nothing else may. The application comes first, then what it belongs to, so that a
// session or an application can be listed and removed by its prefix. A key is a safe relative path on any disk.
import type { ApplicationId, SessionId } from '../../kit/ids.ts';

export type ArtifactKey = string & { readonly kind: 'artifact key' };
export type ArtifactPrefix = string & { readonly kind: 'artifact prefix' };

const PART = /^[a-z0-9][a-z0-9-]{0,127}(\.[a-z0-9]{1,8})?$/;

/** Ids, numbers and checksums only: a name that a caller or a page chose is never part of a key. */
function path(...parts: readonly (string | number)[]): string {
  const bad = parts.find(part => !PART.test(String(part)));
  if (bad !== undefined) throw new Error(`${JSON.stringify(bad)} cannot be part of an artifact's key`);
  return parts.join('/');
}

const key = (...parts: readonly (string | number)[]): ArtifactKey => path(...parts) as ArtifactKey;
const prefix = (...parts: readonly (string | number)[]): ArtifactPrefix => `${path(...parts)}/` as ArtifactPrefix;

/** For keys that come back from a row or a listing. */
export function asKey(text: string): ArtifactKey {
  return key(...text.split('/'));
}

type App = ApplicationId;
type Session = SessionId;

export const applicationPrefix = (app: App): ArtifactPrefix => prefix(app);
export const sessionPrefix = (app: App, session: Session): ArtifactPrefix => prefix(app, 'sessions', session);

export const uploadKey = (app: App, session: Session, upload: string): ArtifactKey =>
  key(app, 'sessions', session, 'uploads', upload);

export const downloadKey = (app: App, session: Session, download: string): ArtifactKey =>
  key(app, 'sessions', session, 'downloads', download);

export const recordingPrefix = (app: App, session: Session): ArtifactPrefix =>
  prefix(app, 'sessions', session, 'recording');

/** Segments of one size share one. */
export const recordingInitKey = (app: App, session: Session, page: number, run: number): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `init-${run}.mp4`);

export const recordingSegmentKey = (app: App, session: Session, page: number, segment: number): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `${segment}.m4s`);

/** One assembly of a page; a later one has an id of its own, so that links to the earlier one keep their bytes. */
export const recordingFileKey = (app: App, session: Session, page: number, assembly: string): ArtifactKey =>
  key(app, 'sessions', session, 'recording', page, `${assembly}.mp4`);

/** How a recorded session looked at its end. */
export const pictureKey = (app: App, session: Session): ArtifactKey => key(app, 'sessions', session, 'picture.jpg');

export const logKey = (app: App, session: Session, part: number): ArtifactKey =>
  key(app, 'sessions', session, 'logs', part);

export const contextPrefix = (app: App, context: string): ArtifactPrefix => prefix(app, 'contexts', context);

export const contextVersionKey = (app: App, context: string, version: string): ArtifactKey =>
  key(app, 'contexts', context, version);

export const contextCookiesKey = (app: App, context: string, version: string): ArtifactKey =>
  key(app, 'contexts', context, `${version}.cookies`);

/** The bytes of an extension are kept once for each application, however often they are uploaded. */
export const extensionKey = (app: App, checksum: string): ArtifactKey => key(app, 'extensions', checksum);

export const certificateKey = (app: App, certificate: string): ArtifactKey => key(app, 'certificates', certificate);

/** All of them, as the domain gets them: it sees engines as types only. */
export const artifactKeys = {
  sessionPrefix,
  uploadKey,
  downloadKey,
  recordingPrefix,
  recordingInitKey,
  recordingSegmentKey,
  recordingFileKey,
  pictureKey,
  logKey,
  contextPrefix,
  contextVersionKey,
  extensionKey,
  certificateKey,
};
export type ArtifactKeys = typeof artifactKeys;
