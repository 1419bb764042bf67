// What must not be seen of a page: fields in which passwords are, or were, typed. Each frame is kept only when it is known
// where they were before and after it was painted; everything between the two places is black.

import { isObject, type JsonObject } from '../../kit/json.ts';
import type { Workers } from '../../kit/worker-pool.ts';
import { BLACKOUT } from './blackout-job.ts';
import type { CapturedFrame } from './capture.ts';
import { numberAt, type TargetChannel } from './channel.ts';
import type { Rect } from './jpeg-blackout.ts';
import { jpegSize } from './jpeg-size.ts';
import { LAST_FIELDS, watchFields } from './watch-fields.ts';

export type MaskKind = 'password' | 'all' | 'none';
export interface Masked {
  readonly jpeg: Buffer;
  /** Fields have moved, so more is black than they are. */
  readonly isWide: boolean;
}

/** Blacks out what must not be seen; undefined: this frame must not be kept, ask for another. */
export type Mask = (frame: CapturedFrame) => Promise<Masked | undefined>;

/** A page that is busy for longer than this is not kept as it looks now. */
const ASK_MS = 2_000;
/** More fields than this, and the whole picture is black. */
const FIELDS_MAX = 200;
/** Around a field: its border, its shadow, and what the picture's coding smears. */
const MARGIN_PX = 6;
const WORLD = 'berth';
const EVERYTHING: Rect = { x: -1e6, y: -1e6, width: 1e8, height: 1e8 };

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface PageMaskOptions {
  readonly kind: MaskKind;
  readonly session: string;
  /** Pictures are painted in its threads. */
  readonly workers: Workers;
}

export class PageMask {
  readonly #options: PageMaskOptions;
  /** The page and its frames in other processes. */
  readonly #targets = new Map<string, MaskedTarget>();
  /** Where the fields were, the newest last. */
  #answers: ReadonlyArray<readonly Rect[]> = [];

  constructor(options: PageMaskOptions) {
    this.#options = options;
  }

  /** The page itself, or a frame of it that has a process of its own. */
  add(channel: TargetChannel): void {
    const { kind } = this.#options;
    if (kind === 'none') return;
    this.#targets.set(channel.id, new MaskedTarget(channel, kind));
    channel.whenGone(() => this.#targets.delete(channel.id));
  }

  readonly mask: Mask = async frame => {
    const asItIs = { jpeg: frame.jpeg, isWide: false };
    if (this.#options.kind === 'none') return asItIs;
    const after = await this.#fields().catch(() => undefined);
    if (!after) return undefined;
    // The oldest of these was given before the frame was painted.
    this.#answers = [...this.#answers.slice(-frame.ahead), after];
    const rects = this.#answers.reduce(spanned);
    if (rects.length === 0) return asItIs;
    const jpeg = await this.#painted(frame, rects);
    return jpeg && { jpeg, isWide: this.#answers.some(answer => !isAlike(answer, after)) };
  };

  /** Undefined also where there is too much to paint now: a later frame will do. */
  async #painted(frame: CapturedFrame, rects: readonly Rect[]): Promise<Buffer | undefined> {
    const shown = inPicture(frame, rects);
    if (!shown) return undefined;
    const { workers, session } = this.#options;
    const input = { jpeg: frame.jpeg, rects: shown };
    const { jpeg } = await workers.run(BLACKOUT, input, { of: session }).catch(() => ({ jpeg: undefined }));
    return jpeg && Buffer.from(jpeg.buffer);
  }

  /** As if the page were not scrolled: each frame says how far it was. */
  async #fields(): Promise<readonly Rect[]> {
    const page = [...this.#targets.values()].find(({ channel }) => channel.kind === 'page');
    if (!page || (await this.#inView()).length === 0) return [];
    const before = await scrollOf(page.channel);
    const rects = await this.#inView();
    const after = await scrollOf(page.channel);
    if (rects.length > FIELDS_MAX) return [EVERYTHING];
    return rects.map(rect => hull(moved(rect, before), moved(rect, after)));
  }

  async #inView(): Promise<readonly Rect[]> {
    const each = await Promise.all(
      [...this.#targets.values()].map(async target => {
        const rects = await target.fields();
        if (rects.length === 0) return [];
        const origin = await this.#originOf(target);
        return rects.map(rect => moved(rect, origin));
      }),
    );
    return each.flat();
  }

  /** Where the frame stands in the page. */
  async #originOf({ channel }: MaskedTarget): Promise<Point> {
    const origin = { x: 0, y: 0 };
    for (let inner = channel; inner.parent && inner.kind !== 'page'; inner = inner.parent) {
      const owner = await ask(inner.parent, 'DOM.getFrameOwner', { frameId: inner.id });
      const [quad] = await quadsOf(inner.parent, { backendNodeId: owner.backendNodeId ?? 0 });
      if (!quad) throw new Error('the frame is not shown');
      origin.x += quad.x;
      origin.y += quad.y;
    }
    return origin;
  }
}

class MaskedTarget {
  readonly channel: TargetChannel;
  readonly #script: string;
  /** By frame. Empty: to be asked for. */
  #worlds = new Map<string, number>();
  #areKnown = false;

  constructor(channel: TargetChannel, kind: 'password' | 'all') {
    this.channel = channel;
    this.#script = watchFields(kind === 'all');
    channel.on(method => {
      if (method.startsWith('Page.frame')) this.#areKnown = false;
    });
    channel.post('Page.enable');
    channel.post('Page.addScriptToEvaluateOnNewDocument', {
      source: this.#script,
      worldName: WORLD,
      runImmediately: true,
    });
  }

  /** A document may be replaced while it is asked: then the new one is. */
  async fields(): Promise<readonly Rect[]> {
    try {
      return await this.#ask();
    } catch (error) {
      if (this.channel.isGone) return [];
      this.#areKnown = false;
      return this.#ask().catch(again => {
        throw again ?? error;
      });
    }
  }

  async #ask(): Promise<readonly Rect[]> {
    if (!this.#areKnown) await this.#findWorlds();
    const each = await Promise.all([...this.#worlds.values()].map(world => this.#fieldsIn(world)));
    return each.flat();
  }

  async #findWorlds(): Promise<void> {
    this.#areKnown = true;
    const { frameTree } = await ask(this.channel, 'Page.getFrameTree');
    const worlds = new Map<string, number>();
    for (const frameId of framesOf(frameTree)) {
      const { executionContextId } = await ask(this.channel, 'Page.createIsolatedWorld', { frameId, worldName: WORLD });
      if (typeof executionContextId === 'number') worlds.set(frameId, executionContextId);
    }
    this.#worlds = worlds;
  }

  /** Almost always there is none, and one question is all. */
  async #fieldsIn(contextId: number): Promise<readonly Rect[]> {
    const expression = `(${this.#script}).travels`;
    const asked = { expression, contextId, returnByValue: true };
    const { result, exceptionDetails } = await ask(this.channel, 'Runtime.evaluate', asked);
    const travels = isObject(result) ? result.value : undefined;
    if (exceptionDetails || !Array.isArray(travels)) throw new Error('the fields are not known');
    if (travels.length > FIELDS_MAX) return [EVERYTHING];
    const rects = await Promise.all(travels.map((travel, index) => this.#rectsOf(contextId, index, travel)));
    return rects.flat();
  }

  /** The field where it is, and all the way it has come since it was last asked for. */
  async #rectsOf(contextId: number, index: number, travel: unknown): Promise<readonly Rect[]> {
    const expression = `globalThis.${LAST_FIELDS}[${index}]`;
    const { result } = await ask(this.channel, 'Runtime.evaluate', { expression, contextId });
    const objectId = isObject(result) ? result.objectId : undefined;
    if (typeof objectId !== 'string') return [];
    const [left = 0, top = 0, right = 0, bottom = 0] = Array.isArray(travel) ? travel.map(Number) : [];
    try {
      const rects = await quadsOf(this.channel, { objectId });
      return rects.map(rect => hull(moved(rect, { x: left, y: top }), moved(rect, { x: right, y: bottom })));
    } finally {
      this.channel.post('Runtime.releaseObject', { objectId });
    }
  }
}

const ask = (channel: TargetChannel, method: string, params: JsonObject = {}): Promise<JsonObject> =>
  channel.send(method, params, ASK_MS);

async function scrollOf(page: TargetChannel): Promise<Point> {
  const { cssVisualViewport: seen } = await ask(page, 'Page.getLayoutMetrics');
  return isObject(seen) ? { x: numberAt(seen, 'pageX'), y: numberAt(seen, 'pageY') } : { x: 0, y: 0 };
}

/** What is not laid out has none. */
async function quadsOf(channel: TargetChannel, node: JsonObject): Promise<readonly Rect[]> {
  const { quads } = await ask(channel, 'DOM.getContentQuads', node).catch((error: unknown): JsonObject => {
    if (error instanceof Error && /layout object|compute content quads|box model/i.test(error.message)) return {};
    throw error;
  });
  return (Array.isArray(quads) ? quads : []).flatMap(quad => boxOf(quad) ?? []);
}

function boxOf(quad: unknown): Rect | undefined {
  if (!Array.isArray(quad) || !quad.every(value => typeof value === 'number')) return undefined;
  const [xs, ys] = [quad.filter((_, index) => index % 2 === 0), quad.filter((_, index) => index % 2 === 1)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

function framesOf(tree: unknown): string[] {
  if (!isObject(tree)) return [];
  const { frame, childFrames } = tree;
  const id = isObject(frame) ? frame.id : undefined;
  const below = Array.isArray(childFrames) ? childFrames.flatMap(framesOf) : [];
  return typeof id === 'string' ? [id, ...below] : below;
}

/** The same fields, earlier and later: all the way between the places. */
function spanned(before: readonly Rect[], after: readonly Rect[]): readonly Rect[] {
  if (before.length !== after.length) return [...before, ...after];
  return before.map((from, index) => hull(from, after[index] ?? from));
}

const isAlike = (some: readonly Rect[], others: readonly Rect[]): boolean =>
  some.length === others.length && some.every((rect, index) => isNear(rect, others[index] ?? rect));

const isNear = (a: Rect, b: Rect): boolean =>
  [a.x - b.x, a.y - b.y, a.width - b.width, a.height - b.height].every(px => Math.abs(px) <= 1);

const moved = (rect: Rect, { x, y }: Point): Rect => ({ ...rect, x: rect.x + x, y: rect.y + y });

function hull(a: Rect, b: Rect): Rect {
  const [x, y] = [Math.min(a.x, b.x), Math.min(a.y, b.y)];
  const right = Math.max(a.x + a.width, b.x + b.width);
  const bottom = Math.max(a.y + a.height, b.y + b.height);
  return { x, y, width: right - x, height: bottom - y };
}

/** From the page's pixels to those of the picture. */
function inPicture({ jpeg, metadata }: CapturedFrame, rects: readonly Rect[]): readonly Rect[] | undefined {
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
