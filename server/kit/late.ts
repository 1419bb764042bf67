// A function that must be handed on before what it calls exists: for the rare circle that no order of starting resolves.

export interface Late<Params extends readonly unknown[], Result> {
  readonly call: (...params: Params) => Result;
  /** Once, before anything is served. */
  bind(target: (...params: Params) => Result): void;
}

/** `name` is for the error of a call that comes before `bind`, which is a bug. */
export function late<Params extends readonly unknown[], Result>(name: string): Late<Params, Result> {
  let bound: ((...params: Params) => Result) | undefined;
  return {
    call: (...params) => {
      if (!bound) throw new Error(`${name} is called before it is bound`);
      return bound(...params);
    },
    bind: target => {
      if (bound) throw new Error(`${name} is bound already`);
      bound = target;
    },
  };
}
