// A function that can be passed to other parts before its target exists. It is for circular dependencies that no order
// of construction resolves.

export interface LateFunction<Params extends readonly unknown[], Result> {
  readonly call: (...params: Params) => Result;
  /** Called once, before anything is served. */
  bind(target: (...params: Params) => Result): void;
}

/** `name` appears in the error for a call before `bind`, which is a bug. */
export function lateFunction<Params extends readonly unknown[], Result>(name: string): LateFunction<Params, Result> {
  let boundFunction: ((...params: Params) => Result) | undefined;
  return {
    call: (...params) => {
      if (!boundFunction) throw new Error(`${name} was called before it was bound`);
      return boundFunction(...params);
    },
    bind: target => {
      if (boundFunction) throw new Error(`${name} is already bound`);
      boundFunction = target;
    },
  };
}
