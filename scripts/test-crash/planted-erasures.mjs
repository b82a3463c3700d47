/** So many receipts are written for one that is not. */
const WRITTEN_BETWEEN = 7;

export const ERASURE_PLANTS = {
  /** It says that an erasure is over, and now and then forgets it. */
  'finish-forgotten': (engine) => {
    let finished = 0;
    return changing(engine, (records, expected, changes) => {
      if (written(changes, 'r/').length > 0) {
        finished += 1;
        if (finished % (WRITTEN_BETWEEN + 1) === 0) return true;
      }
      return records.change(expected, changes);
    });
  },
  /** The first part of a list passes for all of it, and is carried out. */
  'begun-early': (engine) =>
    changing(engine, (records, expected, changes) => {
      const dueAt = Date.now();
      const parts = written(changes, 'b/').filter(([, { complete, total }]) => !complete && total > 0);
      const whole = parts.map(([key, batch]) => [key, { ...batch, complete: true, dueAt }]);
      const scheduled = parts.map(([key]) => [`s/${String(dueAt).padStart(15, '0')}/${key.slice(2)}`, '']);
      return records.change(expected, withAll(changes, [...whole, ...scheduled]));
    }),
  /** What may have been carried out is not told from what was never sent. */
  'claim-unnoted': (engine) =>
    changing(engine, (records, expected, changes) => {
      const entries = written(changes, 'e/').map(([key, entry]) => [key, { ...entry, unknown: false }]);
      return records.change(expected, withAll(changes, entries));
    }),
};

export const plantedErasures = [
  { name: 'finish-forgotten', tell: /were repeated/ },
  { name: 'begun-early', tell: /before the list was read to its end/ },
  { name: 'claim-unnoted', tell: /called already gone/ },
].map((fault) => ({ ...fault, under: 'erasures-lmdb', size: { kills: 8, erasures: 600 } }));

function changing({ records }, change) {
  return {
    records: {
      get: (keys) => records.get(keys),
      range: (from, to, limit) => records.range(from, to, limit),
      change: (expected, changes) => change(records, expected, changes),
    },
  };
}

/** What a change writes under keys that begin so. */
function written(changes, prefix) {
  return [...changes]
    .filter(([key, value]) => key.startsWith(prefix) && value !== undefined)
    .map(([key, value]) => [key, JSON.parse(value)]);
}

function withAll(changes, others) {
  return new Map([...changes, ...others.map(([key, value]) => [key, JSON.stringify(value)])]);
}
