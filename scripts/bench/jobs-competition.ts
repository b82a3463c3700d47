// What several processes that share a queue get done together, and how often they are in each other's way.
import type { EngineName } from '../test-crash/engines.js';
import { inTurn, median, spread } from './measuring.js';
import type { Cycles, cycle } from './jobs-cycles.js';
import { ask, kill, start, type Started } from './jobs-places.js';

const COUNTS = [1, 2, 4];
const ROUND_MS = 1_000;

/** Of so many processes: what they did together in each round. */
interface Result {
  readonly count: number;
  readonly cycles: Cycles[];
}

/**
 * Prints cycles/s and conflicts with 1, 2 and 4 processes.
 * @param pending how many logouts wait all the time
 * @throws when a logout was given out twice
 */
export async function reportCompetition(
  engine: EngineName,
  place: string,
  rounds: number,
  pending: number,
): Promise<void> {
  const args = [engine, place, `cycles-${pending}`];
  const processes: Started<object>[] = [];
  for (let n = 0; n < Math.max(...COUNTS); n += 1) processes.push(await start('./jobs-process.ts', args));
  for (const { child } of processes.slice(0, 1)) await ask(child, { task: 'fill', count: pending });
  const given = new Set<string>();
  const results = COUNTS.map((count): Result => ({ count, cycles: [] }));
  const subjects = results.map(({ count, cycles }) => async () => {
    const answers = (await Promise.all(
      processes.slice(0, count).map(({ child }) => ask(child, { task: 'cycle', ms: ROUND_MS })),
    )) as Awaited<ReturnType<typeof cycle>>[];
    const ids = answers.flatMap((answer) => answer.ids);
    for (const id of ids) if (given.size === given.add(id).size) throw new Error(`${id} was given out twice`);
    const sum = (name: keyof Cycles): number => answers.reduce((total, answer) => total + answer[name], 0);
    const result = {
      rate: sum('rate'),
      size: sum('size'),
      claims: sum('claims'),
      conflicts: sum('conflicts'),
    };
    cycles.push(result);
    return result.rate;
  });
  await inTurn(subjects, rounds, false);
  for (const { child } of processes) await kill(child);
  console.log(`  cycles of add, claim and finish, in processes that share one queue; ${pending} wait`);
  const measured = results.map(({ count, cycles }) => ({ count, cycles: cycles.slice(1) })); // the first round is for warming up
  report(measured);
  console.log(`    none of ${given.size} logouts was given out twice`);
}

function rateOf({ cycles }: Pick<Result, 'cycles'>): number {
  return median(cycles.map(({ rate }) => rate));
}

function report(results: readonly Result[]): void {
  const alone = results[0]?.cycles ?? [];
  for (const { count, cycles } of results.slice(1)) {
    const ratios = cycles.map(({ rate }, round) => rate / (alone[round]?.rate ?? NaN));
    console.log(`    ${`${count} processes ÷ 1`.padEnd(26)} ${spread(ratios)}`);
  }
  for (const { count, cycles } of results) {
    const sum = (name: keyof Cycles): number => cycles.reduce((total, result) => total + result[name], 0);
    const share = ((100 * sum('conflicts')) / Math.max(1, sum('claims'))).toFixed(1);
    const rate = Math.round(rateOf({ cycles }));
    const perClaim = (sum('size') / Math.max(1, sum('claims') - sum('conflicts'))).toFixed(1);
    console.log(
      `    ${`${count} process${count > 1 ? 'es' : ''}`.padEnd(26)} ${rate} cycles/s; ` +
        `${sum('conflicts')} conflicts in ${sum('claims')} claims (${share} %), ${perClaim} logouts a claim`,
    );
  }
}
