import type { Command } from 'commander';
import type {
  DebateSpaceOutbox,
  LogoutHistoryEntry,
  OutboxStats,
  ParkedLogout,
  EndReason,
} from 'nestjs-debate-space';
import { confirm } from '../confirmation.js';
import { addExamples, type CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { whole } from './users.js';
import { action } from '../plugin.js';
import { counted, date, duration, shown, table } from '../output.js';
import { textInVariables } from '../variables.js';

const PAGE = 1000;

interface Chosen {
  readonly all?: boolean;
  readonly yes?: boolean;
}

/** Logouts that wait, and those that are parked. Sends nothing itself, but for `drain`. */
export function addOutbox(program: Command, cli: CliContext): void {
  const group = program
    .command('outbox')
    .description('see and retry the logouts that wait in the storage of your app');
  addExamples(
    group,
    'outbox stats',
    'outbox drain --timeout 60',
    'outbox parked --limit 10',
    'outbox history 4711',
    'outbox retry --all',
    'outbox discard 001795423393235-576b70aa-8c1f-4f0e-9d6f-3b1f6f0f8f11',
  );
  const needs = { worker: false, shared: true };

  group
    .command('stats')
    .description('how many logouts wait, and for how long')
    .action(
      action(cli, needs, async ({ outbox }, context) => {
        const stats = await outbox.stats();
        if (stats.unreadableMs !== undefined)
          throw new Failure('configuration', 'The storage cannot be read.');
        context.output.answer(stats, statsText(stats));
      }),
    );

  group
    .command('drain')
    .description('deliver what is due in the storage: logouts first, then erasures')
    .option('--timeout <seconds>', 'how long it may take, from 1 to 3600', whole(1, 3_600), 60)
    .action(
      action(cli, needs, async ({ outbox }, { io, output }, { timeout }: { timeout: number }) => {
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
    .action(
      action(cli, needs, async ({ outbox }, context, page: { limit: number; skip: number }) => {
        const parked = await outbox.parked(page);
        context.output.answer(parked, parked.length > 0 ? parkedText(parked) : 'Nothing is parked.');
      }),
    );

  group
    .command('history')
    .description("what became of a user's logouts")
    .argument('<uid>', 'under which the user was registered')
    .action(
      action(cli, needs, async ({ outbox }, context, uid: string) => {
        const logouts = await outbox.history(uid);
        context.output.answer(
          logouts,
          logouts.length > 0 ? historyText(logouts) : 'No logout of this user is known.',
        );
      }),
    );

  group
    .command('retry')
    .description('have parked logouts sent again, by the app that shares the storage')
    .argument('[id...]', 'of parked logouts')
    .option('--all', 'every parked logout')
    .action(
      action(cli, needs, async ({ outbox }, context, ids: string[], { all }: Chosen) => {
        const retried = await applied(await chosen(outbox, ids, all), (id) => outbox.retry(id));
        context.output.answer(
          { retried },
          `${counted(retried, 'logout')} due again; your app sends what is due.`,
        );
        requireAll(ids, retried);
      }),
    );

  group
    .command('discard')
    .description('remove parked logouts without sending them; cannot be undone')
    .argument('[id...]', 'of parked logouts')
    .option('--all', 'every parked logout')
    .option('--yes', 'do not ask for confirmation')
    .action(
      action(cli, needs, async ({ outbox }, context, ids: string[], { all, yes }: Chosen) => {
        const given = await chosen(outbox, ids, all);
        if (yes !== true && given.length > 0) {
          const consequence = `${counted(given.length, 'logout')} would never be sent: these users stay signed in to the debate space.`;
          await confirm(context, consequence, `discard ${given.length}`);
        }
        const discarded = await applied(given, (id) => outbox.discard(id));
        context.output.answer(
          { discarded },
          `${counted(discarded, 'logout')} discarded. They will not be sent.`,
        );
        requireAll(ids, discarded);
      }),
    );
}

async function chosen(
  outbox: DebateSpaceOutbox,
  ids: readonly string[],
  all: boolean | undefined,
): Promise<readonly string[]> {
  if ((all === true) === ids.length > 0)
    throw new Failure('usage', 'Name the ids of parked logouts, or --all.');
  if (all !== true) return [...new Set(ids)];
  const found: string[] = [];
  for (;;) {
    const page = await outbox.parked({ limit: PAGE, skip: found.length });
    found.push(...page.map(({ id }) => id));
    if (page.length < PAGE) return found;
  }
}

/** @throws {Failure} when none of them was parked */
async function applied(ids: readonly string[], change: (id: string) => Promise<boolean>): Promise<number> {
  let changed = 0;
  for (const id of ids) if (await change(id)) changed += 1;
  if (changed === 0 && ids.length > 0) throw new Failure('failed', 'No parked logout has such an id.');
  return changed;
}

/** @param ids named on the command line; with `--all`, which names none, others may have been faster */
function requireAll(ids: readonly string[], changed: number): void {
  const missing = new Set(ids).size - changed;
  if (missing > 0) throw new Failure('failed', `${counted(missing, 'id')} of no parked logout.`);
}

export function statsText({ engine, pending, parked, oldestPendingMs }: OutboxStats): string {
  const oldest = oldestPendingMs === undefined ? '' : `, the oldest for ${duration(oldestPendingMs)}`;
  return table([
    ['engine', engine],
    ['pending', `${pending}${oldest}`],
    ['parked', String(parked)],
  ]);
}

/** With a heading, and below each logout what to do. */
export function parkedText(logouts: readonly ParkedLogout[]): string {
  const rows = logouts.map(({ id, uid, reason, endedAt, parkedAt, attempts, cause }) => [
    id,
    shown(uid),
    date(endedAt),
    date(parkedAt),
    String(attempts),
    cause,
    reasonText[reason],
  ]);
  const headings = ['ID', 'UID', 'ENDED', 'PARKED', 'TRIES', 'CAUSE', 'REASON'];
  return withHints(table([headings, ...rows]), logouts);
}

export function historyText(logouts: readonly LogoutHistoryEntry[]): string {
  const rows = logouts.map(({ id, state, endedAt, attempts, cause = '–', dueAt, finishedAt, reason }) => [
    id,
    state,
    date(endedAt),
    finishedAt ? date(finishedAt) : dueAt ? `due ${date(dueAt)}` : '–',
    String(attempts),
    cause,
    reasonText[reason],
  ]);
  const headings = ['ID', 'STATE', 'ENDED', 'FINISHED', 'TRIES', 'CAUSE', 'REASON'];
  return withHints(table([headings, ...rows]), logouts);
}

/** @param lines the first one is the heading */
function withHints(lines: string, logouts: readonly { readonly hint?: string | undefined }[]): string {
  const [heading = '', ...rows] = lines.split('\n');
  return [
    heading,
    ...rows.flatMap((row, n) => {
      const { hint } = logouts[n] ?? {};
      return hint === undefined ? [row] : [row, `  → ${textInVariables(hint)}`];
    }),
  ].join('\n');
}

/** Why a user is logged out, for people. */
export const reasonText: Readonly<Record<EndReason, string>> = {
  destroyed: 'session ended',
  'user-removed': 'user removed from the session',
  'user-replaced': 'another user took over the session',
  cleared: 'all sessions cleared',
  abandoned: 'session left by the browser',
  expired: 'session expired',
  explicit: 'ended by the app',
  requested: 'requested',
  erasure: 'before an erasure',
};
