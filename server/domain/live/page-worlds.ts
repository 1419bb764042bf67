// Isolated worlds in the frames of a page, created once per document so that a call requires only one message. Scripts
// of the page cannot observe the worlds. Results come from the page, so they are validated as hostile input.

import type { ObservedTarget } from '../../engines/browser/observation.ts';
import type { JsonObject } from '../../kit/json.ts';

/**
 * How long to wait for a response from the page, which may be busy. Without a response, no `select` list is opened and
 * no text is copied.
 */
const RESPONSE_TIMEOUT_MS = 2_000;
const WORLD_NAME = 'berth-live';
/** The maximum nesting depth and the maximum number of the frames that are searched. */
const DEPTH_MAX = 8;
const FRAMES_MAX = 50;

export type Args = ReadonlyArray<number | string>;

/** A frame of the page: its id, and the target of the process that the frame runs in. */
export interface Frame {
  readonly target: ObservedTarget;
  readonly id: string;
}

const GET_FRAME_CORNER = `function () {
  const { x, y } = this.getBoundingClientRect();
  return { x: x + this.clientLeft, y: y + this.clientTop };
}`;

export class PageWorlds {
  readonly #page: ObservedTarget;
  /** Frames of the page that run in their own process, by frame id. */
  readonly #remoteFrames: () => ReadonlyMap<string, ObservedTarget>;
  readonly #worlds = new Map<ObservedTarget, Map<string, number>>();

  constructor(page: ObservedTarget, remoteFrames: () => ReadonlyMap<string, ObservedTarget>) {
    this.#page = page;
    this.#remoteFrames = remoteFrames;
  }

  /** The main frame of the page. Its id is the target id of the page. */
  get main(): Frame {
    return { target: this.#page, id: this.#page.id };
  }

  /** Every frame of the page, in any process. */
  async frames(): Promise<readonly Frame[]> {
    const targets = [this.#page, ...this.#remoteFrames().values()];
    const frameLists = await Promise.all(
      targets.map(async target => {
        const { frameTree } = await target
          .send('Page.getFrameTree', {}, RESPONSE_TIMEOUT_MS)
          .catch((): JsonObject => ({}));
        return idsOf(frameTree).map(id => ({ target, id }));
      }),
    );
    return frameLists.flat().slice(0, FRAMES_MAX);
  }

  /** Calls a function in the frame. Returns an empty object if the call failed. */
  async callInFrame(frame: Frame, source: string, args: Args, byValue: boolean): Promise<JsonObject> {
    const expression = `(${source})(${args.map(arg => JSON.stringify(arg)).join(', ')})`;
    for (const isLast of [false, true])
      try {
        const contextId = await this.#worldOf(frame);
        const params = { expression, contextId, returnByValue: byValue, timeout: RESPONSE_TIMEOUT_MS };
        const { result } = await frame.target.send('Runtime.evaluate', params, RESPONSE_TIMEOUT_MS);
        return Object(result);
      } catch {
        // The document may have been replaced in the meantime, so the function is called once more, in the new
        // document.
        this.#worlds.get(frame.target)?.delete(frame.id);
        if (isLast || frame.target.isGone) break;
      }
    return {};
  }

  /** Calls a function on an object that an earlier call returned. */
  async call(target: ObservedTarget, objectId: string, functionDeclaration: string, args: Args): Promise<JsonObject> {
    const params = { objectId, functionDeclaration, arguments: args.map(value => ({ value })), returnByValue: true };
    const { result } = await target
      .send('Runtime.callFunctionOn', params, RESPONSE_TIMEOUT_MS)
      .catch((): JsonObject => ({}));
    return Object(result);
  }

  /**
   * Calls the function with a point of the page. If the point is in a nested frame, the function is called there, with
   * the point relative to that frame. `corner` is the position of that frame in the page.
   */
  async callAtPoint(source: string, x: number, y: number): Promise<{ frame: Frame; found: JsonObject; corner: Point }> {
    let frame = this.main;
    const corner = { x: 0, y: 0 };
    for (let depth = 0; ; depth++) {
      const remoteObject = await this.callInFrame(frame, source, [x - corner.x, y - corner.y], false);
      const { className, objectId } = remoteObject;
      const isFrame = typeof className === 'string' && /^HTMLI?FrameElement$/.test(className);
      if (depth === DEPTH_MAX || !isFrame || typeof objectId !== 'string')
        return { frame, found: remoteObject, corner };
      const nestedFrame = await this.#frameInside(frame, objectId, corner);
      if (!nestedFrame) return { frame, found: {}, corner };
      frame = nestedFrame;
    }
  }

  async #frameInside(frame: Frame, objectId: string, corner: { x: number; y: number }): Promise<Frame | undefined> {
    const { target } = frame;
    const { node } = await target
      .send('DOM.describeNode', { objectId }, RESPONSE_TIMEOUT_MS)
      .catch((): JsonObject => ({}));
    const id = Object(node).frameId;
    const { value } = await this.call(target, objectId, GET_FRAME_CORNER, []);
    target.post('Runtime.releaseObject', { objectId });
    if (typeof id !== 'string') return undefined;
    const { x, y } = Object(value);
    corner.x += typeof x === 'number' ? x : 0;
    corner.y += typeof y === 'number' ? y : 0;
    return { target: this.#remoteFrames().get(id) ?? target, id };
  }

  async #worldOf({ target, id }: Frame): Promise<number> {
    const worldsByFrame = this.#worlds.get(target) ?? this.#listenTo(target);
    const existingId = worldsByFrame.get(id);
    if (existingId !== undefined) return existingId;
    const { executionContextId } = await target.send(
      'Page.createIsolatedWorld',
      { frameId: id, worldName: WORLD_NAME },
      RESPONSE_TIMEOUT_MS,
    );
    if (typeof executionContextId !== 'number') throw new Error('the frame has no isolated world');
    worldsByFrame.set(id, executionContextId);
    return executionContextId;
  }

  /**
   * Caches the worlds of a target. Any change of its frames clears the cache, because a context id may then refer to
   * another world.
   */
  #listenTo(target: ObservedTarget): Map<string, number> {
    const worldsByFrame = new Map<string, number>();
    this.#worlds.set(target, worldsByFrame);
    target.on(method => {
      if (method.startsWith('Page.frame')) worldsByFrame.clear();
    });
    target.whenGone(() => this.#worlds.delete(target));
    target.post('Page.enable');
    return worldsByFrame;
  }
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

function idsOf(tree: unknown): string[] {
  const { frame, childFrames } = Object(tree);
  const id = Object(frame).id;
  const nestedIds = Array.isArray(childFrames) ? childFrames.flatMap(idsOf) : [];
  return typeof id === 'string' ? [id, ...nestedIds] : nestedIds;
}
