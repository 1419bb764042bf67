// Pictures of pages for people who look at them: from the recorder where it looks already, from a screencast of their own
// where a session is not recorded. That one runs only while somebody looks.
import type { Clock } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';
import { Capture } from './capture.ts';
import type { TargetChannel } from './channel.ts';
import { Hub } from './hub.ts';
import type { Recorder } from './recorder.ts';

/** A page that is behind another one paints nothing; its picture is asked for once. */
const STILL_MS = 3_000;

export interface Picture {
  readonly jpeg: Buffer;
  /** CSS pixels of the page that it shows. */
  readonly width: number;
  readonly height: number;
}

interface Own {
  readonly session: string;
  readonly hub: Hub;
  readonly capture: Capture;
}

export class Pictures {
  readonly #recorder: Pick<Recorder, 'sessionOf'>;
  readonly #clock: Clock;
  readonly #own = new Map<string, Own>();

  constructor(recorder: Pick<Recorder, 'sessionOf'>, clock: Clock) {
    this.#recorder = recorder;
    this.#clock = clock;
  }

  /** The newest at once, then each that comes. */
  watch(session: string, target: TargetChannel, seen: (picture: Picture) => void): Closeable {
    const recorded = this.#recorder.sessionOf(session)?.hubOfTarget(target.id);
    const hub = recorded ?? this.#ownOf(session, target).hub;
    const watching = hub.watch(({ jpeg, width, height, metadata }) =>
      seen({ jpeg, width: metadata.deviceWidth || width, height: metadata.deviceHeight || height }),
    );
    if (!hub.newest) void this.#still(target, hub, seen);
    return {
      close: () => {
        void watching.close();
        const own = this.#own.get(target.id);
        if (own && own.hub.viewers === 0) this.#end(target.id, own);
      },
    };
  }

  /** How the session looks, as far as somebody looks at it: asking takes no picture. */
  newestOf(session: string): Buffer | undefined {
    const own = [...this.#own.values()].filter(one => one.session === session).flatMap(({ hub }) => hub.newest ?? []);
    const newest = this.#recorder.sessionOf(session)?.newest ?? own.sort((a, b) => +b.at - +a.at)[0];
    return newest?.jpeg;
  }

  #ownOf(session: string, target: TargetChannel): Own {
    const standing = this.#own.get(target.id);
    if (standing) return standing;
    const hub = new Hub();
    const capture = new Capture({
      channel: target,
      clock: this.#clock,
      isWatched: () => true,
      taken: async ({ jpeg, at, metadata }) => {
        hub.show({ jpeg, at, metadata, width: metadata.deviceWidth, height: metadata.deviceHeight });
        return 'kept';
      },
      visible: () => {},
    });
    const own = { session, hub, capture };
    this.#own.set(target.id, own);
    target.whenGone(() => this.#end(target.id, own));
    return own;
  }

  #end(targetId: string, own: Own): void {
    own.capture.close();
    if (this.#own.get(targetId) === own) this.#own.delete(targetId);
  }

  async #still(target: TargetChannel, hub: Hub, seen: (picture: Picture) => void): Promise<void> {
    try {
      const { data } = await target.send('Page.captureScreenshot', { format: 'jpeg', quality: 80 }, STILL_MS);
      const { cssLayoutViewport } = await target.send('Page.getLayoutMetrics', {}, STILL_MS);
      const { clientWidth = 0, clientHeight = 0 } = Object(cssLayoutViewport);
      if (typeof data !== 'string' || hub.newest) return;
      seen({ jpeg: Buffer.from(data, 'base64'), width: Number(clientWidth), height: Number(clientHeight) });
    } catch {
      // A page that does not answer has no picture.
    }
  }
}
