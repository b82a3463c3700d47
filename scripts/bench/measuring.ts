/**
 * What each subject reaches: the median over its rounds, which alternate in order; one round before is for warming up.
 * @param subjects functions that do one round and say what came of it
 */
export async function inTurn(
  subjects: readonly (() => number | Promise<number>)[],
  rounds: number,
  turned: boolean,
): Promise<number[]> {
  const measured = subjects.map((subject) => ({ subject, values: [] as number[] }));
  for (let round = -1; round < rounds; round += 1) {
    const order = [...measured];
    if ((round % 2 === 0) !== turned) order.reverse();
    for (const { subject, values } of order) {
      const value = await subject();
      if (round >= 0) values.push(value);
    }
  }
  return measured.map(({ values }) => median(values));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle - 1)], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/** Ratios as `median   (lowest to highest)`. */
export function spread(ratios: readonly number[], digits = 3): string {
  const [middle, low, high] = [median(ratios), Math.min(...ratios), Math.max(...ratios)] as const;
  return `${middle.toFixed(digits)}   (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

/** The value that such a share of all lies at or below; 0.5 and 0.99 are p50 and p99. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}
