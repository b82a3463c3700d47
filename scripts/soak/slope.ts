export interface Sample {
  /** In milliseconds. */
  readonly at: number;
  readonly value: number;
}

const HOUR_MS = 60 * 60_000;

/** By least squares. */
export function slopePerHour(samples: readonly Sample[]): number {
  const at = mean(samples.map((sample) => sample.at));
  const value = mean(samples.map((sample) => sample.value));
  const sum = (of: (sample: Sample) => number): number =>
    samples.reduce((total, sample) => total + of(sample), 0);
  const spread = sum((sample) => (sample.at - at) ** 2);
  return spread === 0 ? 0 : (sum((sample) => (sample.at - at) * (sample.value - value)) / spread) * HOUR_MS;
}

/** The median of a third of the samples: 0, 1 or 2. */
export function ofPart(samples: readonly Sample[], part: number): number {
  const third = Math.ceil(samples.length / 3);
  const values = samples.slice(part * third, (part + 1) * third).map(({ value }) => value);
  return values.sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
