/** Plain lines, one per result. @param columns what they are called, by the property that they show */
export function table(columns, results) {
  const rows = [columns, ...results];
  const widths = Object.keys(columns).map((key) => Math.max(...rows.map((row) => String(row[key]).length)));
  const line = (row) =>
    Object.keys(columns).map((key, column) => {
      const text = String(row[key]);
      return column === 0 ? text.padEnd(widths[column]) : text.padStart(widths[column]);
    });
  return rows.map((row) => line(row).join('  ')).join('\n');
}
