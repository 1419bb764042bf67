// Masks the password fields of a page, including fields that no longer have the type `password`, and all elements that
// show one of the `secrets`, which are strings that the server typed. A frame is kept only if the positions of the
// fields are known both before and after it was painted. The area between the two positions of a field is black.

import { isObject, type JsonObject } from '../../kit/json.ts';
import type { SecretTexts } from '../../kit/secret-texts.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { BLACKOUT } from './blackout-job.ts';
import type { CapturedFrame } from './capture.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import type { Rect } from './jpeg-blackout.ts';
import { jpegSize } from './jpeg-size.ts';
import { type TypingOutcome, type TypingRequest, typeText } from './type-text.ts';
import { COVER_FUNCTION, LAST_FIELDS, UNCOVER_FUNCTION, watchFieldsScript } from './watch-fields.ts';

export type MaskKind = 'password' | 'all' | 'none';
export interface MaskedFrame {
  readonly jpeg: Buffer;
  /** Whether the fields have moved. The masked area is then larger than the fields. */
  readonly isOvermasked: boolean;
}

/** A picture that is not a frame of the screencast, such as a screenshot. */
export type StillImage = Pick<CapturedFrame, 'jpeg' | 'metadata'>;
export type MaskedStill = StillImage & { readonly unmasked: Buffer };

/** Masks a frame. Returns undefined if the frame must not be kept; the caller then captures another frame. */
export type Mask = (frame: CapturedFrame) => Promise<MaskedFrame | undefined>;

/** If the page does not respond within this time, the frame is not kept. */
const REQUEST_TIMEOUT_MS = 2_000;
/** With more fields than this, the whole picture is masked in black. */
const FIELDS_MAX = 200;
/**
 * Added on each side of a field, because its edges may lie between pixels. A JPEG block that touches the area becomes
 * completely black.
 */
const MARGIN_PX = 1;
const WORLD_NAME = 'berth';
const WHOLE_PAGE: Rect = { x: -1e6, y: -1e6, width: 1e8, height: 1e8 };

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface PageMaskOptions {
  readonly kind: MaskKind;
  readonly session: string;
  /** Strings that are masked wherever the page shows them, unless `kind` is `none`. */
  readonly secrets: Pick<SecretTexts, 'forms'>;
  /** Threads in which pictures are masked. */
  readonly workers: Workers;
  /** While this returns true, all pictures are completely black. */
  readonly isCovered: () => boolean;
}

export class PageMask {
  readonly #options: PageMaskOptions;
  /** The page and its out-of-process frames. */
  readonly #targets = new Map<string, MaskedTarget>();
  /** Positions of the fields, as read when each of the last frames arrived. Newest last. */
  #fieldRects: ReadonlyArray<readonly Rect[]> = [];

  constructor(options: PageMaskOptions) {
    this.#options = options;
  }

  /** Adds the page itself or one of its out-of-process frames. */
  add(channel: TargetChannel): void {
    const { kind, secrets } = this.#options;
    if (kind === 'none') return;
    this.#targets.set(channel.id, new MaskedTarget(channel, kind, secrets));
    channel.whenGone(() => this.#targets.delete(channel.id));
  }

  readonly mask: Mask = async frame => {
    if (this.#options.isCovered()) {
      const jpeg = await blacken(frame.jpeg, this.#options.workers, this.#options.session);
      return jpeg && { jpeg, isOvermasked: false };
    }
    const unchangedFrame = { jpeg: frame.jpeg, isOvermasked: false };
    if (this.#options.kind === 'none') return unchangedFrame;
    const currentRects = await this.#documentFieldRects().catch(() => undefined);
    if (!currentRects) return undefined;
    // The oldest of the kept positions were read before the frame was painted.
    this.#fieldRects = [...this.#fieldRects.slice(-frame.framesAhead), currentRects];
    const rects = this.#fieldRects.reduce(mergeRects);
    if (rects.length === 0) return unchangedFrame;
    const jpeg = await this.#blackOut(frame, rects);
    return (
      jpeg && {
        jpeg,
        isOvermasked: this.#fieldRects.some(earlierRects => !areSimilarRects(earlierRects, currentRects)),
      }
    );
  };

  /** Takes a picture and masks it. Returns undefined if the picture must not be shown. */
  async maskStill(takeStill: () => Promise<StillImage>): Promise<MaskedStill | undefined> {
    if (this.#options.isCovered()) {
      const stillImage = await takeStill();
      const jpeg = await blacken(stillImage.jpeg, this.#options.workers, this.#options.session);
      return jpeg && { ...stillImage, jpeg, unmasked: stillImage.jpeg };
    }
    if (this.#options.kind === 'none') return withoutMask(await takeStill());
    const fieldRectsBefore = await this.#documentFieldRects();
    const stillImage = await takeStill();
    const rects = mergeRects(fieldRectsBefore, await this.#documentFieldRects());
    if (rects.length === 0) return withoutMask(stillImage);
    const jpeg = await this.#blackOut(stillImage, rects);
    return jpeg && { ...stillImage, jpeg, unmasked: stillImage.jpeg };
  }

  /** Types into the marked element, whichever frame of the page contains it. From then on, the element is masked. */
  async type(typing: TypingRequest): Promise<TypingOutcome | undefined> {
    for (const target of this.#targets.values()) {
      const typingOutcome = await target.type(typing);
      if (typingOutcome) return typingOutcome;
    }
    return undefined;
  }

  /**
   * Hides everything that is masked in the documents of the page, or shows it again. Returns false if any of it was
   * visible while it should have been hidden.
   */
  async cover(shouldCover: boolean): Promise<boolean> {
    const coverResults = await Promise.all([...this.#targets.values()].map(target => target.cover(shouldCover)));
    return coverResults.every(Boolean);
  }

  /**
   * Masks the rectangles in the picture. Returns undefined if that is not possible, for example because the workers are
   * overloaded.
   */
  async #blackOut(frame: StillImage, rects: readonly Rect[]): Promise<Buffer | undefined> {
    const pixelRects = toFramePixels(frame, rects);
    if (!pixelRects) return undefined;
    const { workers, session } = this.#options;
    const blackoutInput = { jpeg: frame.jpeg, rects: pixelRects };
    const { jpeg } = await workers.run(BLACKOUT, blackoutInput, { owner: session }).catch(() => ({ jpeg: undefined }));
    return jpeg && Buffer.from(jpeg.buffer);
  }

  /**
   * Returns the positions of the fields in document coordinates. The scroll offset is not subtracted here, because it
   * differs from one picture to the next.
   */
  async #documentFieldRects(): Promise<readonly Rect[]> {
    const page = [...this.#targets.values()].find(({ channel }) => channel.kind === 'page');
    if (!page || (await this.#visibleRects()).length === 0) return [];
    const scrollBefore = await scrollOf(page.channel);
    const rects = await this.#visibleRects();
    const scrollAfter = await scrollOf(page.channel);
    if (rects.length > FIELDS_MAX) return [WHOLE_PAGE];
    return rects.map(rect => union(translate(rect, scrollBefore), translate(rect, scrollAfter)));
  }

  async #visibleRects(): Promise<readonly Rect[]> {
    const targetRects = await Promise.all(
      [...this.#targets.values()].map(async target => {
        const rects = await target.readFieldRects();
        if (rects.length === 0) return [];
        const origin = await this.#originOf(target);
        return rects.map(rect => translate(rect, origin));
      }),
    );
    return targetRects.flat();
  }

  /** The position of an out-of-process frame in the page. */
  async #originOf({ channel }: MaskedTarget): Promise<Point> {
    const origin = { x: 0, y: 0 };
    for (
      let innerChannel = channel;
      innerChannel.parent && innerChannel.kind !== 'page';
      innerChannel = innerChannel.parent
    ) {
      const frameOwner = await request(innerChannel.parent, 'DOM.getFrameOwner', { frameId: innerChannel.id });
      const [rect] = await rectsOfNode(innerChannel.parent, { backendNodeId: frameOwner.backendNodeId ?? 0 });
      if (!rect) throw new Error('the out-of-process frame has no layout in its parent');
      origin.x += rect.x;
      origin.y += rect.y;
    }
    return origin;
  }
}

class MaskedTarget {
  readonly channel: TargetChannel;
  readonly #shouldMaskAllFields: boolean;
  readonly #secrets: Pick<SecretTexts, 'forms'>;
  /** Isolated execution contexts, by frame id. */
  #worlds = new Map<string, number>();
  #areWorldsKnown = false;

  constructor(channel: TargetChannel, kind: 'password' | 'all', secrets: Pick<SecretTexts, 'forms'>) {
    this.channel = channel;
    this.#shouldMaskAllFields = kind === 'all';
    this.#secrets = secrets;
    channel.on(method => {
      if (method.startsWith('Page.frame')) this.#areWorldsKnown = false;
    });
    channel.post('Page.enable');
    channel.post('Page.addScriptToEvaluateOnNewDocument', {
      source: watchFieldsScript(this.#shouldMaskAllFields),
      worldName: WORLD_NAME,
      runImmediately: true,
    });
  }

  get #script(): string {
    return watchFieldsScript(this.#shouldMaskAllFields, this.#secrets.forms);
  }

  /**
   * Types into the document that contains the marked element, if the document belongs to this target. If the document
   * is replaced in the meantime, nothing is typed into the new one.
   */
  async type(typing: TypingRequest): Promise<TypingOutcome | undefined> {
    await this.#findWorlds().catch(() => {});
    for (const contextId of this.#worlds.values()) {
      const typingOutcome = await typeText(
        this.channel,
        contextId,
        watchFieldsScript(this.#shouldMaskAllFields),
        typing,
      );
      if (typingOutcome) return typingOutcome;
    }
    return undefined;
  }

  /**
   * Covers or uncovers the fields in all documents. When covering, tries again if a document is replaced in the
   * meantime.
   */
  async cover(shouldCover: boolean): Promise<boolean> {
    const secrets = this.#secrets.forms;
    const callExpression = `globalThis.${shouldCover ? COVER_FUNCTION : UNCOVER_FUNCTION}(${JSON.stringify(secrets)})`;
    const coverAll = async (): Promise<boolean> => {
      await this.#findWorlds();
      const evaluations = [...this.#worlds.values()].map(async contextId => {
        const params = { expression: `${this.#script}; ${callExpression}`, contextId, returnByValue: true };
        const { result } = await request(this.channel, 'Runtime.evaluate', params);
        return isObject(result) && result.value === true;
      });
      return (await Promise.all(evaluations)).every(Boolean);
    };
    return coverAll().catch(error => {
      if (this.channel.isGone) return true;
      if (shouldCover) return coverAll();
      throw error;
    });
  }

  /** Returns the positions of the fields. Tries again if the document is replaced in the meantime. */
  async readFieldRects(): Promise<readonly Rect[]> {
    try {
      return await this.#requestRects();
    } catch (error) {
      if (this.channel.isGone) return [];
      this.#areWorldsKnown = false;
      return this.#requestRects().catch(retryError => {
        throw retryError ?? error;
      });
    }
  }

  async #requestRects(): Promise<readonly Rect[]> {
    if (!this.#areWorldsKnown) await this.#findWorlds();
    const documentRects = await Promise.all([...this.#worlds.values()].map(world => this.#fieldRectsIn(world)));
    return documentRects.flat();
  }

  async #findWorlds(): Promise<void> {
    this.#areWorldsKnown = true;
    const { frameTree } = await request(this.channel, 'Page.getFrameTree');
    const worlds = new Map<string, number>();
    for (const frameId of framesOf(frameTree)) {
      const { executionContextId } = await request(this.channel, 'Page.createIsolatedWorld', {
        frameId,
        worldName: WORLD_NAME,
      });
      if (typeof executionContextId === 'number') worlds.set(frameId, executionContextId);
    }
    this.#worlds = worlds;
  }

  /**
   * Returns the positions of the fields in one document. If there are no fields, which is the usual case, this takes
   * only one call.
   */
  async #fieldRectsIn(contextId: number): Promise<readonly Rect[]> {
    const expression = `(${this.#script}).travels`;
    const params = { expression, contextId, returnByValue: true };
    const { result, exceptionDetails } = await request(this.channel, 'Runtime.evaluate', params);
    const fieldOffsets = isObject(result) ? result.value : undefined;
    if (exceptionDetails || !Array.isArray(fieldOffsets))
      throw new Error('the mask script did not return the positions of the fields');
    if (fieldOffsets.length > FIELDS_MAX) return [WHOLE_PAGE];
    const rects = await Promise.all(
      fieldOffsets.map((offsetsOfField, index) => this.#rectsOf(contextId, index, offsetsOfField)),
    );
    return rects.flat();
  }

  /** Returns the field's current rectangles, extended over the positions that the field has had since the last call. */
  async #rectsOf(contextId: number, index: number, offsets: unknown): Promise<readonly Rect[]> {
    const expression = `globalThis.${LAST_FIELDS}[${index}]`;
    const { result } = await request(this.channel, 'Runtime.evaluate', { expression, contextId });
    const objectId = isObject(result) ? result.objectId : undefined;
    if (typeof objectId !== 'string') return [];
    const [left = 0, top = 0, right = 0, bottom = 0] = Array.isArray(offsets) ? offsets.map(Number) : [];
    try {
      const rects = await rectsOfNode(this.channel, { objectId });
      return rects.map(rect => union(translate(rect, { x: left, y: top }), translate(rect, { x: right, y: bottom })));
    } finally {
      this.channel.post('Runtime.releaseObject', { objectId });
    }
  }
}

/**
 * Returns the picture with all pixels black. Returns undefined if the workers are overloaded; the picture must then not
 * be kept.
 */
export async function blacken(jpeg: Buffer, workers: Workers, session: string): Promise<Buffer | undefined> {
  const blackoutInput = { jpeg, rects: [WHOLE_PAGE] };
  const { jpeg: blackJpeg } = await workers
    .run(BLACKOUT, blackoutInput, { owner: session })
    .catch(() => ({ jpeg: undefined }));
  return blackJpeg && Buffer.from(blackJpeg.buffer);
}

export const withoutMask = (stillImage: StillImage): MaskedStill => ({ ...stillImage, unmasked: stillImage.jpeg });

const request = (channel: TargetChannel, method: string, params: JsonObject = {}): Promise<JsonObject> =>
  channel.send(method, params, REQUEST_TIMEOUT_MS);

async function scrollOf(page: TargetChannel): Promise<Point> {
  const { cssVisualViewport: viewport } = await request(page, 'Page.getLayoutMetrics');
  return isObject(viewport) ? { x: numberAt(viewport, 'pageX'), y: numberAt(viewport, 'pageY') } : { x: 0, y: 0 };
}

/** Returns the rectangles of a node, or none if the node has no layout. */
async function rectsOfNode(channel: TargetChannel, node: JsonObject): Promise<readonly Rect[]> {
  const { quads } = await request(channel, 'DOM.getContentQuads', node).catch((error: unknown): JsonObject => {
    if (error instanceof Error && /layout object|compute content quads|box model/i.test(error.message)) return {};
    throw error;
  });
  return (Array.isArray(quads) ? quads : []).flatMap(quad => boundingRectOf(quad) ?? []);
}

function boundingRectOf(quad: unknown): Rect | undefined {
  if (!Array.isArray(quad) || !quad.every(value => typeof value === 'number')) return undefined;
  const [xs, ys] = [quad.filter((_, index) => index % 2 === 0), quad.filter((_, index) => index % 2 === 1)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

function framesOf(tree: unknown): string[] {
  if (!isObject(tree)) return [];
  const { frame, childFrames } = tree;
  const id = isObject(frame) ? frame.id : undefined;
  const childIds = Array.isArray(childFrames) ? childFrames.flatMap(framesOf) : [];
  return typeof id === 'string' ? [id, ...childIds] : childIds;
}

/**
 * Returns, for each field, the union of its earlier and later rectangles. If the number of fields has changed, returns
 * all rectangles.
 */
function mergeRects(rectsBefore: readonly Rect[], rectsAfter: readonly Rect[]): readonly Rect[] {
  if (rectsBefore.length !== rectsAfter.length) return [...rectsBefore, ...rectsAfter];
  return rectsBefore.map((from, index) => union(from, rectsAfter[index] ?? from));
}

const areSimilarRects = (someRects: readonly Rect[], other: readonly Rect[]): boolean =>
  someRects.length === other.length && someRects.every((rect, index) => isNear(rect, other[index] ?? rect));

const isNear = (a: Rect, b: Rect): boolean =>
  [a.x - b.x, a.y - b.y, a.width - b.width, a.height - b.height].every(px => Math.abs(px) <= 1);

const translate = (rect: Rect, { x, y }: Point): Rect => ({ ...rect, x: rect.x + x, y: rect.y + y });

function union(a: Rect, b: Rect): Rect {
  const [x, y] = [Math.min(a.x, b.x), Math.min(a.y, b.y)];
  const right = Math.max(a.x + a.width, b.x + b.width);
  const bottom = Math.max(a.y + a.height, b.y + b.height);
  return { x, y, width: right - x, height: bottom - y };
}

/** Converts rectangles from CSS pixels of the page to pixels of the picture. */
function toFramePixels({ jpeg, metadata }: StillImage, rects: readonly Rect[]): readonly Rect[] | undefined {
  const size = jpegSize(jpeg);
  if (!size) return undefined;
  const scale = (size.width / (metadata.deviceWidth || size.width)) * (metadata.pageScaleFactor || 1);
  const top = metadata.offsetTop * (size.width / (metadata.deviceWidth || size.width));
  const { scrollOffsetX, scrollOffsetY } = metadata;
  return rects.map(({ x, y, width, height }) => ({
    x: (x - scrollOffsetX) * scale - MARGIN_PX,
    y: (y - scrollOffsetY) * scale + top - MARGIN_PX,
    width: width * scale + 2 * MARGIN_PX,
    height: height * scale + 2 * MARGIN_PX,
  }));
}
