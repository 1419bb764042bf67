// Provides viewers with pictures of pages: from the recorder if the session is recorded, otherwise from a separate
// screencast, which runs only while there are viewers.
import type { Clock } from '../../kit/clock.ts';
import { isObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { Capture } from './capture.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import { Hub } from './hub.ts';
import { blackedOut, type PageMask, type StillImage, withoutMask } from './page-mask.ts';
import type { Recorder } from './recorder.ts';

/** Time limit for the screenshot that is taken of a background tab, because such a tab paints no frames. */
const SCREENSHOT_MS = 3_000;

export interface LiveFrame {
  readonly jpeg: Buffer;
  /** The same picture without masks. Shown only to the person who controls the page. */
  readonly unmasked: Buffer;
  /** Whether the whole picture is masked for everybody except the person who has control in a hand-off. */
  readonly isCovered: boolean;
  /**
   * Whether it is unknown what must be masked, because the page is not recorded. The whole picture is then masked for
   * everybody except the person who has control.
   */
  readonly isUnknown: boolean;
  /** Size of the visible part of the page, in CSS pixels. */
  readonly width: number;
  readonly height: number;
}

interface OwnCapture {
  readonly session: string;
  readonly hub: Hub;
  readonly capture: Capture;
}

export class LiveFrames {
  readonly #recorder: Pick<Recorder, 'sessionOf'>;
  readonly #clock: Clock;
  readonly #ownCaptures = new Map<string, OwnCapture>();

  readonly #workers: Workers;
  /**
   * Sessions whose pictures are black. The object is new each time a session is covered, so that `cover` notices if the
   * session was covered again in the meantime.
   */
  readonly #coveredSessions = new Map<string, object>();

  constructor(recorder: Pick<Recorder, 'sessionOf'>, clock: Clock, workers: Workers) {
    this.#recorder = recorder;
    this.#clock = clock;
    this.#workers = workers;
  }

  /**
   * While a person has control of the session, makes its pictures black. Pictures that were taken during this time stay
   * black afterwards.
   */
  async cover(session: string, isToBeCovered: boolean): Promise<void> {
    const captures = [...this.#ownCaptures.values()]
      .filter(one => one.session === session)
      .map(({ capture }) => capture);
    if (isToBeCovered) this.#coveredSessions.set(session, {});
    else {
      const cover = this.#coveredSessions.get(session);
      for (const capture of captures) capture.refresh();
      await Promise.all(captures.map(capture => capture.handled()));
      // In the meantime, the session may have been covered for another person.
      if (this.#coveredSessions.get(session) !== cover) return;
      this.#coveredSessions.delete(session);
    }
    for (const capture of captures) capture.refresh();
  }

  /** Calls `seen` at once with the newest picture, and then with each new picture. */
  watch(session: string, target: TargetChannel, onPicture: (frame: LiveFrame) => void): Closeable {
    const recording = this.#recorder.sessionOf(session);
    const recordedHub = recording?.hubOfTarget(target.id);
    // A separate screencast would show secrets that are masked in the recording of the other pages.
    if (!recordedHub && recording?.hasSecrets) return { close: () => {} };
    const isUnknown = !recordedHub && recording?.hasMasks === true;
    const hub = recordedHub ?? this.#ownOf(session, target, isUnknown).hub;
    const subscription = hub.watch(({ jpeg, unmasked, isCovered, width, height, metadata }) =>
      onPicture({
        jpeg,
        unmasked,
        isCovered,
        isUnknown,
        width: metadata.deviceWidth || width,
        height: metadata.deviceHeight || height,
      }),
    );
    if (!hub.newest) {
      // A picture that is black for everybody without control needs no mask, so that the page need not respond.
      const mask = isUnknown ? undefined : recording?.maskOfTarget(target.id);
      void this.#screenshot(session, target, hub, { mask, isUnknown }, onPicture);
    }
    return {
      close: () => {
        void subscription.close();
        const own = this.#ownCaptures.get(target.id);
        if (own && own.hub.viewerCount === 0) this.#end(target.id, own);
      },
    };
  }

  /** Returns the newest picture of the session, if there is one. Takes no new picture. */
  newestOf(session: string): Buffer | undefined {
    const ownFrames = [...this.#ownCaptures.values()]
      .filter(one => one.session === session)
      .flatMap(({ hub }) => hub.newest ?? []);
    const newest = this.#recorder.sessionOf(session)?.newest ?? ownFrames.sort((a, b) => +b.at - +a.at)[0];
    return newest?.jpeg;
  }

  #ownOf(session: string, target: TargetChannel, isUnknown: boolean): OwnCapture {
    const existing = this.#ownCaptures.get(target.id);
    if (existing) return existing;
    const hub = new Hub();
    const capture = new Capture({
      channel: target,
      clock: this.#clock,
      isWatched: () => true,
      onFrame: async ({ jpeg, at, metadata }) => {
        const isCovered = this.#coveredSessions.has(session);
        const maskedJpeg = isCovered || isUnknown ? await blackedOut(jpeg, this.#workers, session) : jpeg;
        if (!maskedJpeg) return 'rejected';
        const { deviceWidth: width, deviceHeight: height } = metadata;
        hub.show({ jpeg: maskedJpeg, unmasked: jpeg, isCovered, at, metadata, width, height });
        return 'kept';
      },
      onVisibility: () => {},
    });
    const own = { session, hub, capture };
    this.#ownCaptures.set(target.id, own);
    target.whenGone(() => this.#end(target.id, own));
    return own;
  }

  #end(targetId: string, own: OwnCapture): void {
    own.capture.close();
    if (this.#ownCaptures.get(targetId) === own) this.#ownCaptures.delete(targetId);
  }

  async #screenshot(
    session: string,
    target: TargetChannel,
    hub: Hub,
    { mask, isUnknown }: { readonly mask: PageMask | undefined; readonly isUnknown: boolean },
    onPicture: (frame: LiveFrame) => void,
  ): Promise<void> {
    try {
      const take = (): Promise<StillImage> => screenshotOf(target);
      const wasCovered = this.#coveredSessions.has(session);
      const takenStill = mask ? await mask.still(take) : withoutMask(await take());
      const isCovered = wasCovered || this.#coveredSessions.has(session);
      const shownJpeg =
        takenStill && (isCovered || isUnknown)
          ? await blackedOut(takenStill.jpeg, this.#workers, session)
          : takenStill?.jpeg;
      if (!takenStill || !shownJpeg || hub.newest) return;
      const still = { ...takenStill, jpeg: shownJpeg };
      const { deviceWidth: width, deviceHeight: height } = still.metadata;
      onPicture({ jpeg: still.jpeg, unmasked: still.unmasked, isCovered, isUnknown, width, height });
    } catch {
      // A page that does not respond gets no picture.
    }
  }
}

async function screenshotOf(target: TargetChannel): Promise<StillImage> {
  const { data } = await target.send('Page.captureScreenshot', { format: 'jpeg', quality: 80 }, SCREENSHOT_MS);
  const { cssVisualViewport } = await target.send('Page.getLayoutMetrics', {}, SCREENSHOT_MS);
  if (typeof data !== 'string' || !isObject(cssVisualViewport)) throw new Error('the page has no picture');
  return {
    jpeg: Buffer.from(data, 'base64'),
    metadata: {
      ...{ offsetTop: 0, pageScaleFactor: 1 },
      deviceWidth: numberAt(cssVisualViewport, 'clientWidth'),
      deviceHeight: numberAt(cssVisualViewport, 'clientHeight'),
      scrollOffsetX: numberAt(cssVisualViewport, 'pageX'),
      scrollOffsetY: numberAt(cssVisualViewport, 'pageY'),
    },
  };
}
