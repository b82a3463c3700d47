import type { Command } from 'commander';
import type { DebateSpaceOutbox, LogoutHistoryEntry, OutboxStats, ParkedLogout } from 'nestjs-debate-space';
import { confirm, whole, type CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, date, duration, fields, shown, table } from '../output.js';
import { withPlugin } from '../plugin.js';
import { textInVariables } from '../settings.js';

interface Chosen {
  readonly all?: boolean;
  readonly yes?: boolean;
}

const PAGE = 1000;

/** Logouts that wait, and those that are parked. Sends nothing itself, but for `drain`. */
export function addOutbox(program: Command, cli: CliContext): void {
  const { io, output } = cli;
  const group = program
    .command('outbox')
    .description('see and retry the logouts that wait in the storage of your app');
  const withOutbox = (work: (outbox: DebateSpaceOutbox) => Promise<void>) =>
    withPlugin(cli, { shared: true }, ({ outbox }) => work(outbox));

  group
    .command('stats')
    .description('how many logouts wait, and for how long')
    .action(() =>
      withOutbox(async (outbox) => {
        const stats = await outbox.stats();
        if (stats.unreadableMs !== undefined)
          throw new Failure('configuration', 'The storage cannot be read.');
        output.answer(stats, statsText(stats));
      }),
    );

  group
    .command('drain')
    .description('deliver what is due in the storage: logouts first, then erasures')
    .option('--timeout <seconds>', 'how long it may take, from 1 to 3600', whole(1, 3_600), 60)
    .action(({ timeout }: { timeout: number }) =>
      withOutbox(async (outbox) => {
        output.note('Erasures that are due run here, without `erasure.beforeErase` of your app.');
        const stats = await outbox.drain({ timeoutMs: timeout * 1000, signal: io.interrupted });
        output.answer(stats, statsText(stats));
        if (!stats.drained)
          throw new Failure('unfinished', 'Some of it is still due. Run the command again.');
      }),
    );

  group
    .command('parked')
    .description('the parked logouts with a hint, the longest parked first; shows uids')
    .option('--limit <n>', 'how many at most, from 1 to 1000', whole(1, PAGE), 100)
    .option('--skip <n>', 'how many to leave out', whole(0), 0)
    .action((page: { limit: number; skip: number }) =>
      withOutbox(async (outbox) => {
        const parked = await outbox.parked(page);
        output.answer(parked, parked.length > 0 ? parkedText(parked) : 'Nothing is parked.');
      }),
    );

  group
    .command('history <uid>')
    .description("what became of a user's logouts")
    .action((uid: string) =>
      withOutbox(async (outbox) => {
        const logouts = await outbox.history(uid);
        const none = 'No logout of this user is known.';
        output.answer(logouts, logouts.length > 0 ? historyText(logouts) : none);
      }),
    );

  group
    .command('retry [id...]')
    .description('have parked logouts sent again, by the app that shares the storage')
    .option('--all', 'every parked logout')
    .action((ids: string[], { all }: Chosen) =>
      withOutbox(async (outbox) => {
        const retried = await changed(await chosen(outbox, ids, all), (id) => outbox.retry(id));
        output.answer({ retried }, `${counted(retried, 'logout')} due again; your app sends what is due.`);
        requireAll(ids, retried);
      }),
    );

  group
    .command('discard [id...]')
    .description('remove parked logouts without sending them; cannot be undone')
    .option('--all', 'every parked logout')
    .option('--yes', 'do not ask for confirmation')
    .action((ids: string[], { all, yes = false }: Chosen) =>
      withOutbox(async (outbox) => {
        const given = await chosen(outbox, ids, all);
        const consequence = `${counted(given.length, 'logout')} would never be sent: these users stay signed in to the debate space.`;
        if (!yes && given.length > 0) await confirm(cli, consequence, `discard ${given.length}`);
        const discarded = await changed(given, (id) => outbox.discard(id));
        output.answer({ discarded }, `${counted(discarded, 'logout')} discarded. They will not be sent.`);
        requireAll(ids, discarded);
      }),
    );
}

async function chosen(outbox: DebateSpaceOutbox, ids: readonly string[], all = false): Promise<string[]> {
  if (all === ids.length > 0) throw new Failure('usage', 'Name the ids of parked logouts, or --all.');
  if (!all) return [...new Set(ids)];
  const found: string[] = [];
  for (;;) {
    const page = await outbox.parked({ limit: PAGE, skip: found.length });
    found.push(...page.map(({ id }) => id));
    if (page.length < PAGE) return found;
  }
}

/** @throws {Failure} when none of them was parked */
async function changed(ids: readonly string[], change: (id: string) => Promise<boolean>): Promise<number> {
  let count = 0;
  for (const id of ids) if (await change(id)) count += 1;
  if (count === 0 && ids.length > 0) throw new Failure('failed', 'No parked logout has such an id.');
  return count;
}

/** @param ids named on the command line; with `--all`, which names none, others may have been faster */
function requireAll(ids: readonly string[], count: number): void {
  const missing = new Set(ids).size - count;
  if (missing > 0) throw new Failure('failed', `${counted(missing, 'id')} of no parked logout.`);
}

function statsText({ engine, pending, parked, oldestPendingMs }: OutboxStats): string {
  const oldest = oldestPendingMs === undefined ? '' : `, the oldest for ${duration(oldestPendingMs)}`;
  return fields({ engine, pending: `${pending}${oldest}`, parked });
}

function parkedText(logouts: readonly ParkedLogout[]): string {
  const rows = logouts.map(({ id, uid, endedAt, parkedAt, attempts, cause, reason }) => [
    id,
    shown(uid),
    date(endedAt),
    date(parkedAt),
    String(attempts),
    cause,
    reason,
  ]);
  return withHints([['ID', 'UID', 'ENDED', 'PARKED', 'TRIES', 'CAUSE', 'REASON'], ...rows], logouts);
}

function historyText(logouts: readonly LogoutHistoryEntry[]): string {
  const rows = logouts.map(({ id, state, endedAt, dueAt, finishedAt, attempts, cause = '–', reason }) => {
    const finished = finishedAt ? date(finishedAt) : dueAt ? `due ${date(dueAt)}` : '–';
    return [id, state, date(endedAt), finished, String(attempts), cause, reason];
  });
  return withHints([['ID', 'STATE', 'ENDED', 'FINISHED', 'TRIES', 'CAUSE', 'REASON'], ...rows], logouts);
}

/** A table with what to do about each logout below it. @param rows the first one is the heading */
function withHints(rows: readonly string[][], logouts: readonly { readonly hint?: string }[]): string {
  const lines = table(rows)
    .split('\n')
    .map((line, n) => {
      const { hint } = logouts[n - 1] ?? {};
      return hint === undefined ? line : `${line}\n  → ${textInVariables(hint)}`;
    });
  return lines.join('\n');
}
