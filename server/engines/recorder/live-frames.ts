// Provides viewers with pictures of pages: from the recorder if the session is recorded, otherwise from a separate
// screencast, which runs only while there are viewers.
import type { Clock } from '../../kit/clock.ts';
import { isObject } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { Capture } from './capture.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import { Hub } from './hub.ts';
import { blacken, type PageMask, type StillImage, withoutMask } from './page-mask.ts';
import type { Recorder } from './recorder.ts';

/** Time limit for the screenshot of a background tab, which paints no frames. */
const SCREENSHOT_TIMEOUT_MS = 3_000;

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
  readonly isMaskUnknown: boolean;
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
   * Sessions whose pictures are black. Each time a session is covered, a new object is stored for it, so that `cover`
   * can detect that the session was covered again in the meantime.
   */
  readonly #coveredSessions = new Map<string, object>();

  constructor(recorder: Pick<Recorder, 'sessionOf'>, clock: Clock, workers: Workers) {
    this.#recorder = recorder;
    this.#clock = clock;
    this.#workers = workers;
  }

  /**
   * Makes the pictures of the session black, or stops doing so. Used while a person has control of the session.
   * Pictures that were taken during this time stay black.
   */
  async cover(session: string, shouldCover: boolean): Promise<void> {
    const captures = [...this.#ownCaptures.values()]
      .filter(one => one.session === session)
      .map(({ capture }) => capture);
    if (shouldCover) this.#coveredSessions.set(session, {});
    else {
      const coverToken = this.#coveredSessions.get(session);
      for (const capture of captures) capture.refresh();
      await Promise.all(captures.map(capture => capture.whenHandled()));
      // In the meantime, the session may have been covered for another person.
      if (this.#coveredSessions.get(session) !== coverToken) return;
      this.#coveredSessions.delete(session);
    }
    for (const capture of captures) capture.refresh();
  }

  /** Calls `onPicture` at once with the newest picture, and then with each new picture. */
  watch(session: string, target: TargetChannel, onPicture: (frame: LiveFrame) => void): Closeable {
    const recording = this.#recorder.sessionOf(session);
    const recordedHub = recording?.hubOfTarget(target.id);
    // A separate screencast would show secrets that are masked in the recording of the other pages.
    if (!recordedHub && recording?.hasSecrets) return { close: () => {} };
    const isMaskUnknown = !recordedHub && recording?.hasMasks === true;
    const hub = recordedHub ?? this.#ownCaptureOf(session, target, isMaskUnknown).hub;
    const subscription = hub.watch(({ jpeg, unmasked, isCovered, width, height, metadata }) =>
      onPicture({
        jpeg,
        unmasked,
        isCovered,
        isMaskUnknown,
        width: metadata.deviceWidth || width,
        height: metadata.deviceHeight || height,
      }),
    );
    if (!hub.newestFrame) {
      // A picture that is black for everybody without control needs no mask, and finding the positions to mask requires
      // a response from the page.
      const mask = isMaskUnknown ? undefined : recording?.maskOfTarget(target.id);
      void this.#screenshot(session, target, hub, { mask, isMaskUnknown }, onPicture);
    }
    return {
      close: () => {
        void subscription.close();
        const ownCapture = this.#ownCaptures.get(target.id);
        if (ownCapture && ownCapture.hub.viewerCount === 0) this.#end(target.id, ownCapture);
      },
    };
  }

  /** Returns the newest picture of the session, if there is one. Takes no new picture. */
  newestJpegOf(session: string): Buffer | undefined {
    const ownFrames = [...this.#ownCaptures.values()]
      .filter(one => one.session === session)
      .flatMap(({ hub }) => hub.newestFrame ?? []);
    const newestFrame = this.#recorder.sessionOf(session)?.newest ?? ownFrames.sort((a, b) => +b.at - +a.at)[0];
    return newestFrame?.jpeg;
  }

  #ownCaptureOf(session: string, target: TargetChannel, isMaskUnknown: boolean): OwnCapture {
    const existingCapture = this.#ownCaptures.get(target.id);
    if (existingCapture) return existingCapture;
    const hub = new Hub();
    const capture = new Capture({
      channel: target,
      clock: this.#clock,
      isWatched: () => true,
      onFrame: async ({ jpeg, at, metadata }) => {
        const isCovered = this.#coveredSessions.has(session);
        const maskedJpeg = isCovered || isMaskUnknown ? await blacken(jpeg, this.#workers, session) : jpeg;
        if (!maskedJpeg) return 'rejected';
        const { deviceWidth: width, deviceHeight: height } = metadata;
        hub.show({ jpeg: maskedJpeg, unmasked: jpeg, isCovered, at, metadata, width, height });
        return 'kept';
      },
      onVisibility: () => {},
    });
    const ownCapture = { session, hub, capture };
    this.#ownCaptures.set(target.id, ownCapture);
    target.whenGone(() => this.#end(target.id, ownCapture));
    return ownCapture;
  }

  #end(targetId: string, ownCapture: OwnCapture): void {
    ownCapture.capture.close();
    if (this.#ownCaptures.get(targetId) === ownCapture) this.#ownCaptures.delete(targetId);
  }

  async #screenshot(
    session: string,
    target: TargetChannel,
    hub: Hub,
    { mask, isMaskUnknown }: { readonly mask: PageMask | undefined; readonly isMaskUnknown: boolean },
    onPicture: (frame: LiveFrame) => void,
  ): Promise<void> {
    try {
      const takeScreenshot = (): Promise<StillImage> => screenshotOf(target);
      const wasCovered = this.#coveredSessions.has(session);
      const takenImage = mask ? await mask.maskStill(takeScreenshot) : withoutMask(await takeScreenshot());
      const isCovered = wasCovered || this.#coveredSessions.has(session);
      const shownJpeg =
        takenImage && (isCovered || isMaskUnknown)
          ? await blacken(takenImage.jpeg, this.#workers, session)
          : takenImage?.jpeg;
      if (!takenImage || !shownJpeg || hub.newestFrame) return;
      const shownImage = { ...takenImage, jpeg: shownJpeg };
      const { deviceWidth: width, deviceHeight: height } = shownImage.metadata;
      onPicture({ jpeg: shownImage.jpeg, unmasked: shownImage.unmasked, isCovered, isMaskUnknown, width, height });
    } catch {
      // If the page does not respond, the viewer gets no picture.
    }
  }
}

async function screenshotOf(target: TargetChannel): Promise<StillImage> {
  const { data } = await target.send('Page.captureScreenshot', { format: 'jpeg', quality: 80 }, SCREENSHOT_TIMEOUT_MS);
  const { cssVisualViewport } = await target.send('Page.getLayoutMetrics', {}, SCREENSHOT_TIMEOUT_MS);
  if (typeof data !== 'string' || !isObject(cssVisualViewport))
    throw new Error('the browser returned no screenshot or no viewport size');
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
