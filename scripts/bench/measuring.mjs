/**
 * What each subject reaches: the median over its rounds, which alternate in order; one round before is for warming up.
 * @param subjects functions that do one round and say what came of it
 */
export async function inTurn(subjects, rounds, turned) {
  const measured = subjects.map(() => []);
  for (let round = -1; round < rounds; round += 1) {
    const order = [...subjects.keys()];
    if ((round % 2 === 0) !== turned) order.reverse();
    for (const index of order) {
      const value = await subjects[index]();
      if (round >= 0) measured[index].push(value);
    }
  }
  return measured.map(median);
}

export function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle - 1)] + sorted[Math.floor(middle)]) / 2;
}

/** Ratios as `median   (lowest to highest)`. */
export function spread(ratios, digits = 3) {
  const [middle, low, high] = [median(ratios), Math.min(...ratios), Math.max(...ratios)];
  return `${middle.toFixed(digits)}   (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

/** The value that such a share of all lies at or below; 0.5 and 0.99 are p50 and p99. */
export function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
