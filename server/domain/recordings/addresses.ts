// Addresses of stored parts of recordings, and the data behind them. The addresses work without a credential until they
// expire.
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { contentDisposition } from '../files/content-disposition.ts';
import type { Links } from '../files/links.ts';
import type { FileFinder, ServedFile } from '../files/served-file.ts';
import type { RecordingKeys } from './storage.ts';

export const RECORDING_OBJECT = 'recording';
const OBJECT_ID_PATTERN = /^([0-9a-f-]{36})\.(\d{1,3})\.(init|part|file)\.([0-9a-f-]{1,36})$/;
const VIDEO_MIME_TYPE = 'video/mp4';

/** A stored part of the recording of a page: the init segment of a run, a segment, or an assembled file. */
export interface StoredArtifact {
  readonly session: SessionId;
  readonly page: number;
  readonly kind: 'init' | 'part' | 'file';
  readonly name: string | number;
}

export interface AddressesParts {
  readonly artifacts: Artifacts;
  readonly keys: RecordingKeys;
  readonly links: Links;
}

export class Addresses {
  readonly #parts: AddressesParts;

  constructor(parts: AddressesParts) {
    this.#parts = parts;
  }

  /**
   * Returns the address of a stored part. For an assembled file, this is an address in the artifact store itself, if
   * the store can issue one. The addresses in a playlist always belong to this server, because they must stay the same
   * between requests.
   */
  async urlOf(app: ApplicationId, storedArtifact: StoredArtifact, expiresAt: Date): Promise<string> {
    const { links, artifacts } = this.#parts;
    const { session, page, kind, name } = storedArtifact;
    const serverUrl = () =>
      links.make({ application: app, object: `${RECORDING_OBJECT}:${session}.${page}.${kind}.${name}` }, expiresAt).url;
    if (kind !== 'file') return serverUrl();
    const options = {
      expiresAt,
      verb: 'GET',
      contentType: VIDEO_MIME_TYPE,
      contentDisposition: dispositionOf(storedArtifact),
    } as const;
    return (await artifacts.signedUrl(this.key(app, storedArtifact), options).catch(() => undefined)) ?? serverUrl();
  }

  key(app: ApplicationId, { session, page, kind, name }: StoredArtifact): ArtifactKey {
    const { keys } = this.#parts;
    if (kind === 'init') return keys.init(app, session, page, Number(name));
    if (kind === 'part') return keys.segment(app, session, page, Number(name));
    return keys.file(app, session, page, String(name));
  }

  readonly find: FileFinder = async (app, id): Promise<ServedFile | undefined> => {
    const storedArtifact = parseObjectId(id);
    const key = storedArtifact && this.key(app, storedArtifact);
    const fileStat = key && (await this.#parts.artifacts.stat(key));
    if (!storedArtifact || !key || !fileStat) return undefined;
    return {
      name: fileNameOf(storedArtifact),
      size: fileStat.size,
      mimeType: VIDEO_MIME_TYPE,
      tag: `${storedArtifact.kind}-${storedArtifact.name}`,
      disposition: storedArtifact.kind === 'file' ? 'attachment' : 'inline',
      createdAt: new Date(0),
      open: range => this.#parts.artifacts.open(key, range),
    };
  };
}

function parseObjectId(id: string): StoredArtifact | undefined {
  const [, session, page, kind, name] = OBJECT_ID_PATTERN.exec(id) ?? [];
  if (!session || !name || (kind !== 'init' && kind !== 'part' && kind !== 'file')) return undefined;
  return { session: session as SessionId, page: Number(page), kind, name }; // Signed by this service.
}

const fileNameOf = ({ session, page, kind, name }: StoredArtifact): string =>
  kind === 'file' ? `${session}-${page}.mp4` : `${kind}-${name}.mp4`;

const dispositionOf = (storedArtifact: StoredArtifact): string =>
  contentDisposition('attachment', fileNameOf(storedArtifact));
