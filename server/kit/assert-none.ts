/** Does not compile unless `Missing` is `never`. The error of the compiler then names what is missing. */
export type AssertNone<Missing extends never> = Missing;
