/** Rows with their columns below each other. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A value of the service or of a file, on one line and without control characters, those of the text direction among them. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}

/** Lines without the characters by which the service, or a file, could steer the terminal or turn its text around. */
export function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}

export function date(value: Date | undefined): string {
  return value === undefined ? '' : value.toISOString().replace(/\.\d{3}/, '');
}

/** Such as `3 d 4 h`, `2 min 5 s`. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const;
  let rest = seconds;
  const parts = units.flatMap(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count > 0 ? [`${count} ${unit}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 s';
}

export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
