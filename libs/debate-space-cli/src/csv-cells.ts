/** A spreadsheet takes such a cell for a formula (OWASP, CSV injection); it may stand behind marks of its own. */
const FORMULA = /^'*[=+\-@\t\r\n\0＝＋－＠]/;

/** A cell as `users export` writes it: with a `'` before a formula. */
export function withFormulaMark(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell;
}

/** A cell as `erase --file` reads it: {@link withFormulaMark} undone. */
export function withoutFormulaMark(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;
}
