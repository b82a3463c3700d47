import type { Command } from 'commander';
import type { DebateSpaceOutbox, OutboxStats } from 'nestjs-debate-space';
import { confirm, type CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, duration, fields, records, shown } from '../output.js';
import { withPlugin } from '../plugin.js';
import { textInVariables } from '../settings.js';

interface Chosen {
  readonly all?: boolean;
  readonly yes?: boolean;
}

const PAGE = 1000;

/** The logouts that wait, and the parked ones. Only `drain` sends anything. */
export function addOutbox(program: Command, cli: CliContext): void {
  const { io, output } = cli;
  const group = program
    .command('outbox')
    .description('list the logouts that wait in the storage of your app, and retry or discard them');
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
    .description('deliver the logouts that are due in the storage')
    .option('--timeout <seconds>', 'how long it may take', Number, 60)
    .option('--erasures', 'also erase the users that are due, without `erasure.beforeErase` of your app')
    .action(({ timeout, erasures = false }: { timeout: number; erasures?: boolean }) => {
      const guest = { kinds: erasures ? (['logout', 'erasure'] as const) : (['logout'] as const) };
      return withPlugin(cli, { shared: true, guest }, async ({ outbox, events }) => {
        const causes = new Map<string, string>();
        events.events$.subscribe((event) => {
          if (event.type === 'logout-retrying' && event.hint !== undefined)
            causes.set(event.cause, event.hint);
        });
        const stats = await outbox.drain({ timeoutMs: timeout * 1000, signal: io.interrupted });
        output.answer(stats, statsText(stats));
        for (const [cause, hint] of causes)
          output.note(
            `not delivered (${cause}); your app tries it again; hint: ${shown(textInVariables(hint))}`,
          );
        if (!stats.drained)
          throw new Failure('unfinished', 'Some logouts or erasures are still due. Run the command again.');
      });
    });

  group
    .command('parked')
    .description('the parked logouts with a hint, the longest parked first; shows uids')
    .option('--limit <n>', 'how many at most, from 1 to 1000', Number, 100)
    .option('--skip <n>', 'how many to leave out', Number, 0)
    .action((page: { limit: number; skip: number }) =>
      withOutbox(async (outbox) => {
        const parked = await outbox.parked(page);
        output.answer(parked, parked.length > 0 ? records(parked) : 'Nothing is parked.');
      }),
    );

  group
    .command('history <uid>')
    .description("what became of a user's logouts")
    .action((uid: string) =>
      withOutbox(async (outbox) => {
        const logouts = await outbox.history(uid);
        const none = 'No logout of this user is found.';
        output.answer(logouts, logouts.length > 0 ? records(logouts) : none);
      }),
    );

  const change = (
    name: 'retry' | 'discard',
    ids: readonly string[],
    all: boolean,
    yes: boolean,
    told: string,
  ) =>
    withOutbox(async (outbox) => {
      if (all === ids.length > 0) throw new Failure('usage', 'Name the ids of parked logouts, or --all.');
      const given = all ? await allParked(outbox) : [...new Set(ids)];
      const consequence = `${counted(given.length, 'logout')} would never be sent: these users stay signed in to the debate space.`;
      if (!yes && given.length > 0) await confirm(cli, consequence, `${name} ${given.length}`);
      let count = 0;
      for (const id of given) if (await outbox[name](id)) count += 1;
      if (count === 0 && given.length > 0)
        throw new Failure(
          'failed',
          `No parked logout has such an id; one in the memory of a running app is ${name === 'retry' ? 'retried' : 'discarded'} only there.`,
        );
      output.answer(
        { [name === 'retry' ? 'retried' : 'discarded']: count },
        `${counted(count, 'logout')} ${told}`,
      );
      const missing = all ? 0 : given.length - count; // with --all, others may have been faster
      if (missing > 0)
        throw new Failure('failed', `${counted(missing, 'id')} not found among the parked logouts.`);
    });

  group
    .command('retry [id...]')
    .description('retry parked logouts; your app sends them')
    .option('--all', 'every parked logout')
    .action((ids: string[], { all = false }: Chosen) =>
      change('retry', ids, all, true, 'due again; your app sends what is due.'),
    );

  group
    .command('discard [id...]')
    .description('remove parked logouts without sending them; cannot be undone')
    .option('--all', 'every parked logout')
    .option('--yes', 'do not ask for confirmation')
    .action((ids: string[], { all = false, yes = false }: Chosen) =>
      change('discard', ids, all, yes, 'discarded. They will not be sent.'),
    );
}

async function allParked(outbox: DebateSpaceOutbox): Promise<readonly string[]> {
  const found: string[] = [];
  for (;;) {
    const page = await outbox.parked({ limit: PAGE, skip: found.length });
    found.push(...page.map(({ id }) => id));
    if (page.length < PAGE) return found;
  }
}

function statsText({ engine, pending, parked, oldestPendingMs }: OutboxStats): string {
  const oldest = oldestPendingMs === undefined ? '' : `, the oldest for ${duration(oldestPendingMs)}`;
  return fields({ engine, pending: `${pending}${oldest}`, parked });
}
