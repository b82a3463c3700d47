// What several processes that share a queue get done together, and how often they are in each other's way.
import { inTurn, median, spread } from './measuring.mjs';
import { ask, kill, start } from './outbox-places.mjs';

const COUNTS = [1, 2, 4];
const ROUND_MS = 1_000;

/**
 * Prints cycles/s and conflicts with 1, 2 and 4 processes.
 * @param pending how many logouts wait all the time
 * @throws when a logout was given out twice
 */
export async function reportCompetition(engine, place, rounds, pending) {
  const args = [engine, place, `cycles-${pending}`];
  const processes = [];
  for (let n = 0; n < Math.max(...COUNTS); n += 1) processes.push(await start('./outbox-process.mjs', args));
  await ask(processes[0].child, { task: 'fill', count: pending });
  const given = new Set();
  const results = COUNTS.map(() => []);
  const subjects = COUNTS.map((count, index) => async () => {
    const answers = await Promise.all(
      processes.slice(0, count).map(({ child }) => ask(child, { task: 'cycle', ms: ROUND_MS })),
    );
    const ids = answers.flatMap((answer) => answer.ids);
    for (const id of ids) if (given.size === given.add(id).size) throw new Error(`${id} was given out twice`);
    const sum = (name) => answers.reduce((total, answer) => total + answer[name], 0);
    const result = {
      rate: sum('rate'),
      size: sum('size'),
      claims: sum('claims'),
      conflicts: sum('conflicts'),
    };
    results[index].push(result);
    return result.rate;
  });
  await inTurn(subjects, rounds, false);
  for (const { child } of processes) await kill(child);
  console.log(
    `  cycles of hold, release, claim and finish, in processes that share one queue; ${pending} wait`,
  );
  report(results.map((each) => each.slice(1))); // the first round is for warming up
  console.log(`    none of ${given.size} logouts was given out twice`);
}

function report(results) {
  for (const [index, count] of COUNTS.entries()) {
    if (index === 0) continue;
    const ratios = results[index].map(({ rate }, round) => rate / results[0][round].rate);
    console.log(`    ${`${count} processes ÷ 1`.padEnd(26)} ${spread(ratios)}`);
  }
  for (const [index, count] of COUNTS.entries()) {
    const sum = (name) => results[index].reduce((total, result) => total + result[name], 0);
    const share = ((100 * sum('conflicts')) / Math.max(1, sum('claims'))).toFixed(1);
    const rate = Math.round(median(results[index].map((result) => result.rate)));
    const perClaim = (sum('size') / Math.max(1, sum('claims') - sum('conflicts'))).toFixed(1);
    console.log(
      `    ${`${count} process${count > 1 ? 'es' : ''}`.padEnd(26)} ${rate} cycles/s; ` +
        `${sum('conflicts')} conflicts in ${sum('claims')} claims (${share} %), ${perClaim} logouts a claim`,
    );
  }
}
