import { stringify, type Options } from 'csv-stringify/sync';
import type { DebateSpaceUser } from 'nestjs-debate-space';

/** The fields that `DebateSpaceUser` names, in its order. */
const NAMED_FIELDS = ['uid', 'full_name', 'first_name', 'last_name', 'email', 'image_url', 'created_at'];
/** The last column: what has none of its own. */
const MORE = 'more';

/**
 * A spreadsheet would take some cells for formulas. `escape_formulas` puts a `'` before those that begin with = + - @,
 * their full-width forms, a tab or a carriage return, of the header too; OWASP (CSV Injection) and ASVS 1.2.10 name two
 * beginnings more.
 */
const dialect: Options = {
  escape_formulas: true,
  cast: { string: (text) => (/^[\0\n]/.test(text) ? `'${text}` : text), boolean: String },
};

interface Table {
  readonly header: readonly string[];
  readonly row: (user: DebateSpaceUser) => unknown[];
}

/**
 * The users as CSV (RFC 4180), a text for each page, the header row always first. Objects and arrays are JSON in their
 * cell; null and what is absent leave it empty.
 * @param columns the fields to write. By default the named ones, then the further ones of the first page, then `more`:
 * a JSON object of the fields that came only later
 */
export async function* csvOf(
  pages: AsyncIterable<readonly DebateSpaceUser[]>,
  columns?: readonly string[],
): AsyncGenerator<string, void> {
  let table = columns && tableOf(columns);
  let header = true;
  for await (const users of pages) {
    table ??= tableOfAll(users);
    yield stringify(users.map(table.row), { ...dialect, columns: table.header, header });
    header = false;
  }
  if (header) yield stringify([], { ...dialect, columns: (table ?? tableOfAll([])).header, header });
}

function tableOf(names: readonly string[]): Table {
  return {
    header: names,
    row: (user) => names.map((name) => (Object.hasOwn(user, name) ? user[name] : undefined)),
  };
}

function tableOfAll(users: readonly DebateSpaceUser[]): Table {
  const names = new Set([...NAMED_FIELDS, ...users.flatMap((user) => Object.keys(user))]);
  names.delete(MORE); // a field of that name goes where it says
  const { header, row } = tableOf([...names]);
  const more = (user: DebateSpaceUser): unknown => {
    const fields = Object.entries(user).filter(([name]) => !names.has(name));
    return fields.length === 0 ? undefined : Object.fromEntries(fields);
  };
  return { header: [...header, MORE], row: (user) => [...row(user), more(user)] };
}
