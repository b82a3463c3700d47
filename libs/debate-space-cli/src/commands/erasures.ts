import type { Command } from 'commander';
import type {
  DebateSpaceErasures,
  ErasureProgress,
  ErasureReceipt,
  ErasureStatus,
  RetryingErasure,
} from 'nestjs-debate-space';
import { addExamples, commandContext, confirm, type CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, date, duration, shown, table, type Output } from '../output.js';
import { withPlugin, type Plugin } from '../plugin.js';
import { progressDisplay } from '../progress.js';

/** What became of erasures, and what is to become of them. Sends nothing itself. */
export function addErasures(program: Command, cli: CliContext): void {
  const { output } = cli;
  const group = program.command('erasures').description('see and steer erasures that were requested');
  addExamples(
    group,
    'erasures list',
    'erasures status GDPR-2026-11 --watch',
    'erasures receipts GDPR-2026-11 --json > receipts.ndjson',
    'erasures receipts --uid 4711',
    'erasures retry GDPR-2026-11',
  );
  const withErasures = async (command: Command, work: (plugin: Plugin) => Promise<void>) =>
    withPlugin(await commandContext(command, cli), { worker: false, shared: true }, work);

  group
    .command('list')
    .description('all references, the newest first')
    .action((_: object, command: Command) =>
      withErasures(command, async ({ erasures }) => {
        const count = await output.each(erasures.list(), statusLine, STATUS_COLUMNS);
        if (count === 0) output.note('There are no erasures.');
      }),
    );

  group
    .command('status')
    .description('how a reference stands')
    .argument('<reference>')
    .option('--watch', 'show the progress until its work ends')
    .action((reference: string, { watch = false }: { watch?: boolean }, command: Command) =>
      withErasures(command, async (plugin) => {
        const before = await plugin.erasures.status(reference);
        const status = watch ? await followErasure(plugin, reference, cli) : before;
        output.answer(status, statusText(status));
        if (watch && status.waiting > 0) throw new Failure('unfinished', watchedText(status));
        if (watch) requireErased(status, output);
      }),
    );

  group
    .command('receipts')
    .description('the receipts of a reference, or of a uid: they prove what was erased, and when')
    .argument('[reference]')
    .option('--uid <uid>', 'those of this uid')
    .action((reference: string | undefined, { uid }: { uid?: string }, command: Command) =>
      withErasures(command, async ({ erasures }) => {
        const receipts = receiptsOf(erasures, reference, uid);
        const count = await output.each(receipts, receiptLine, RECEIPT_COLUMNS);
        if (count === 0) output.note('There are no receipts.');
      }),
    );

  const steer = (
    command: Command,
    reference: string,
    name: 'pause' | 'resume' | 'retry' | 'cancel',
    confirmed?: (status: ErasureStatus) => Promise<void>,
  ) =>
    withErasures(command, async ({ erasures }) => {
      const before = await erasures.status(reference);
      if (!before.finishedAt) await confirmed?.(before);
      const status = before.finishedAt ? before : await erasures[name](reference);
      output.answer(status, statusText(status));
      if (before.finishedAt) output.note(`${shown(reference)} is already finished. Nothing to ${name}.`);
    });

  for (const [name, description] of [
    ['pause', 'send nothing more of a reference until it is resumed'],
    ['resume', 'continue a reference after a pause'],
    ['retry', 'try the failed users of a reference again'],
  ] as const)
    group
      .command(name)
      .description(description)
      .argument('<reference>')
      .action((reference: string, _: object, command: Command) => steer(command, reference, name));

  group
    .command('cancel')
    .description('do not erase the users of a reference who were not sent yet; cannot be undone')
    .argument('<reference>')
    .option('--yes', 'do not ask for confirmation')
    .action((reference: string, { yes = false }: { yes?: boolean }, command: Command) =>
      steer(command, reference, 'cancel', async ({ waiting }) => {
        const consequence = `${counted(waiting, 'user')} of ${reference} would not be erased, and the reference could not be used again.`;
        if (!yes) await confirm(cli, consequence, `cancel ${waiting}`);
      }),
    );
}

function receiptsOf(erasures: DebateSpaceErasures, reference: string | undefined, uid: string | undefined) {
  if (reference !== undefined && uid === undefined) return erasures.receipts(reference);
  if (uid !== undefined && reference === undefined) return erasures.receiptsOf(uid);
  throw new Failure('usage', 'Name either a reference or --uid <uid>.');
}

/** Shows the progress of a reference until its work ends, or until the command is interrupted. @returns how it stands then */
export async function followErasure(
  { erasures, events }: Pick<Plugin, 'erasures' | 'events'>,
  reference: string,
  { io, output }: CliContext,
): Promise<ErasureStatus> {
  const { interrupted } = io;
  if (interrupted.aborted) return erasures.status(reference);
  const display = await progressDisplay(io);
  output.sendNotes(display.note);
  const told = new Set<string>();
  const tell = (cause: string): void => {
    if (!told.has(cause)) output.note(`not done at the first attempt (${cause}); it is tried again`);
    told.add(cause);
  };
  // Of this process immediately; what another one has met is in the progress.
  const troubles = events.events$.subscribe((event) => {
    if (event.type === 'erasure-retrying' && event.reference === reference) tell(event.cause);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const next = (progress: ErasureProgress): void => {
        if (progress.retrying) tell(progress.retrying.cause);
        display.show(finishedOf(progress), progress.total, detailOf(progress));
      };
      const shown = erasures.progress(reference).subscribe({ next, error: reject, complete: resolve });
      troubles.add(shown);
      interrupted.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
    });
  } finally {
    troubles.unsubscribe();
    output.sendNotes();
    display.end();
  }
  return erasures.status(reference);
}

/**
 * Says how many users of a reference are not erased although its work ended, and why.
 * @throws {Failure} unless some were erased, and all others were not found
 */
export function requireErased(
  { reference, done, notFound, failed, vetoed, canceled }: ErasureStatus,
  output: Pick<Output, 'note'>,
): void {
  if (failed > 0) {
    const retry = `debate-space erasures retry ${reference}`;
    const problem = `${counted(failed, 'user')} could not be erased`;
    throw new Failure('unfinished', problem, `see the log, fix the cause, then: ${retry}`);
  }
  const reasons = [
    [vetoed, 'vetoed by erasure.beforeErase'],
    [canceled, 'canceled'],
    [notFound, 'not found'],
  ] as const;
  const notErased = reasons.flatMap(([count, why]) =>
    count > 0 ? [`${counted(count, 'user')} ${why}`] : [],
  );
  const text = `Not erased: ${notErased.join(', ')}.`;
  if (vetoed > 0 || canceled > 0) throw new Failure(vetoed > 0 ? 'vetoed' : 'canceled', text);
  if (notFound > 0 && done === 0) throw nobodyFound('Nobody was erased');
  if (notFound > 0) output.note(`${text} --dry-run names the lines.`);
}

/** @param result what a list came to of which the service knows no user */
export function nobodyFound(result: string): Failure {
  const problem = `${result}: the service knows none of the users`;
  return new Failure(
    'notFound',
    problem,
    'check the uids, and the column; who is erased already is not found again.',
  );
}

const STATES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'waiting',
  running: 'running', // whether a process works on it at the moment is not stored
  paused: 'paused',
  overdue: 'overdue',
  done: 'finished',
  canceled: 'canceled',
};
/** Beside it no other state says anything. */
const UNREAD = 'waiting for the rest of the list: nobody is erased before it is read to its end';

/** A reference with its counts; of how users were left out, only what happened. */
export function statusText(status: ErasureStatus): string {
  const { state, complete, requestedAt, finishedAt, requestedBy, retrying } = status;
  const rows: Record<string, string | number | undefined> = {
    reference: shown(status.reference),
    mode: status.mode,
    'requested by': requestedBy && shown(requestedBy),
    state: complete || finishedAt ? STATES[state] : UNREAD,
    requested: date(requestedAt),
    finished: finishedAt && date(finishedAt),
    total: status.total,
    done: status.done,
    'not found': status.notFound || undefined,
    vetoed: status.vetoed || undefined,
    canceled: status.canceled || undefined,
    failed: status.failed || undefined,
    waiting: status.waiting,
    'last failure': retrying && retryingText(retrying),
  };
  return table(
    Object.entries(rows).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** What becomes of the users who are not erased yet, when a command ends that has only watched. */
export function watchedText({ reference, state, complete, waiting }: ErasureStatus): string {
  const left = `${counted(waiting, 'user')} not erased yet.`;
  const command = (name: string) => `debate-space erasures ${name} ${shown(reference)}`;
  if (!complete) return `${left} The list was not stored to its end: send it again, or: ${command('cancel')}`;
  if (state === 'paused') return `${left} They are paused; to go on: ${command('resume')}`;
  return `${left} This command only watched: your app goes on erasing them. To stop that: ${command('pause')} (or cancel). To watch again: ${command('status')} --watch`;
}

/** How many users the work has ended for: nobody is left out by a cancellation or a failure. */
function finishedOf({ done, notFound, vetoed }: ErasureStatus): number {
  return done + notFound + vetoed;
}

/** Why an attempt failed, and when the next one is due. */
function retryingText({ cause, nextAttemptAt }: RetryingErasure): string {
  const leftMs = nextAttemptAt ? nextAttemptAt.getTime() - Date.now() : 0;
  return `${shown(cause)}; ${leftMs <= 0 ? 'the next attempt is due' : `next attempt in ${duration(leftMs)}`}`;
}

function detailOf({ perMinute, msLeft = 0, waitMs, failed, canceled, retrying }: ErasureProgress): string {
  const pace =
    waitMs === undefined
      ? `${perMinute} a minute`
      : `waiting for the rate limit, continues in ${duration(waitMs)}`;
  const parts = [retrying && perMinute === 0 ? retryingText(retrying) : pace];
  if (msLeft > 0) parts.push(`${duration(msLeft)} left`);
  if (failed > 0) parts.push(`${failed} failed`);
  if (canceled > 0) parts.push(`${canceled} canceled`);
  return ` | ${parts.join(' | ')}`;
}

const STATUS_COLUMNS = listed(['REQUESTED', 'MODE', 'STATE', 'FINISHED'], 'REFERENCE');
const RECEIPT_COLUMNS = listed(
  ['DONE', 'MODE', 'OUTCOME', 'STATUS'],
  'TRIES',
  'UID (HASH)'.padEnd(22),
  'REFERENCE',
  'REASON',
);

/** The first columns of a list are aligned. */
function listed(aligned: readonly string[], ...rest: readonly string[]): string {
  const widths = [20, 9, 12, 9];
  return [...aligned.map((cell, n) => cell.padEnd(widths[n] ?? 0)), ...rest].join('  ').trimEnd();
}

function statusLine(status: ErasureStatus): string {
  const { reference, mode, state, requestedAt, total, failed, canceled } = status;
  const rest = `${failed > 0 ? `, ${failed} failed` : ''}${canceled > 0 ? `, ${canceled} canceled` : ''}`;
  const counts = `${finishedOf(status)} of ${total}${rest}`;
  return listed([date(requestedAt), mode, STATES[state], counts], shown(reference));
}

/** With nothing personal in it. */
function receiptLine(receipt: ErasureReceipt): string {
  const { doneAt, mode, outcome, status, attempts, uidHash, reference, reason } = receipt;
  const aligned = [date(doneAt), mode, outcome.replace('-', ' '), String(status ?? '–')];
  return listed(aligned, `${attempts}×`.padEnd(5), uidHash, shown(reference), shown(reason));
}
