/** By the property that they show, what columns are called. */
export type Columns = Readonly<Record<string, string>>;
export type Row = Readonly<Record<string, unknown>>;

/** Plain lines, one per result. */
export function table(columns: Columns, results: readonly Row[]): string {
  const rows: Row[] = [columns, ...results];
  const keys = Object.keys(columns);
  const textOf = (row: Row, key: string): string => {
    const cell = row[key];
    return typeof cell === 'string' || typeof cell === 'number' ? String(cell) : '';
  };
  const widthOf = (key: string): number => Math.max(...rows.map((row) => textOf(row, key).length));
  const line = (row: Row): string[] =>
    keys.map((key, column) => {
      const text = textOf(row, key);
      return column === 0 ? text.padEnd(widthOf(key)) : text.padStart(widthOf(key));
    });
  return rows.map((row) => line(row).join('  ')).join('\n');
}
