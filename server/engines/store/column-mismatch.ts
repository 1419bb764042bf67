// Compares the types of the tables with the columns that the migrations create, when the types are compiled.
import type { Insertable, Selectable } from 'kysely';

/** `default`: an insert may omit the column, which then gets a value. `nullable`: the column may be null. */
export type ColumnKind = 'required' | 'default' | 'nullable';

/** The differences between `Types` and `Columns`, as texts. A table that has no type is not compared. */
export type ColumnMismatch<Types, Columns> = {
  [Table in keyof Types & string]: Table extends keyof Columns
    ? TableMismatch<Table, Types[Table], Columns[Table]>
    : `${Table} is not a table of the database`;
}[keyof Types & string];

type TableMismatch<Table extends string, Types, Columns> = {
  [Name in (keyof Types | keyof Columns) & string]: Name extends keyof Types
    ? Name extends keyof Columns
      ? KindMismatch<`${Table}.${Name}`, KindOf<Types, Name>, Columns[Name]>
      : `${Table}.${Name} is not a column of the database`
    : `${Table}.${Name} of the database has no type`;
}[(keyof Types | keyof Columns) & string];

/** An insert may be required to name a column that has a default. */
type KindMismatch<Name extends string, Kind, KindInDatabase> = Kind extends KindInDatabase
  ? never
  : Kind extends 'nullable'
    ? `${Name} is never null in the database`
    : KindInDatabase extends 'nullable'
      ? `${Name} may be null in the database`
      : Kind extends 'default'
        ? `${Name} has no default in the database`
        : never;

type KindOf<Types, Name extends keyof Types> =
  null extends ValueOf<Selectable<Types>, Name>
    ? 'nullable'
    : undefined extends ValueOf<Insertable<Types>, Name>
      ? 'default'
      : 'required';

/** `undefined` if the row has no such member: a value that the database computes is not inserted. */
type ValueOf<Row, Name> = Name extends keyof Row ? Row[Name] : undefined;
