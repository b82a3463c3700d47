export interface Random {
  /** From 0 to 1. */
  next(): number;
  /** A whole number, from `least` to `most`. */
  from(least: number, most: number): number;
  oneOf<Item>(list: readonly [Item, ...Item[]]): Item;
  oneOf<Item>(list: readonly Item[]): Item | undefined;
  shuffled<Item>(list: readonly Item[]): Item[];
}

/** Random numbers that are the same for the same seed. How the processes interleave is not theirs to repeat. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  };
  for (let warmUp = 0; warmUp < 8; warmUp += 1) next(); // neighbouring seeds begin alike
  const from = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    from,
    oneOf: <Item>(list: readonly Item[]) => list[from(0, list.length - 1)] as Item,
    shuffled: <Item>(list: readonly Item[]) => {
      const shuffled = [...list];
      for (let n = shuffled.length - 1; n > 0; n -= 1) {
        const other = from(0, n);
        [shuffled[n], shuffled[other]] = [shuffled[other] as Item, shuffled[n] as Item];
      }
      return shuffled;
    },
  };
}
