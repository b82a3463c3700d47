import type { Command } from 'commander';
import type { ErasureProgress, ErasureReceipt, ErasureStatus, RetryingErasure } from 'nestjs-debate-space';
import { confirm, type CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, duration, fields, pasteable, shown } from '../output.js';
import { withPlugin, type Plugin } from '../plugin.js';
import { progressDisplay } from '../progress.js';

type Erasures = Plugin['erasures'];

const UNREAD = 'waiting for the rest of the list: no user is erased before the whole list is stored';

/** What became of erasures, and what is to become of them. Sends nothing itself. */
export function addErasures(program: Command, cli: CliContext): void {
  const { output } = cli;
  const group = program
    .command('erasures')
    .description('list erasures, and pause, resume, retry or cancel them');
  const withErasures = (work: (erasures: Erasures) => Promise<void>) =>
    withPlugin(cli, { shared: true }, ({ erasures }) => work(erasures));

  group
    .command('list')
    .description('all references, the newest first')
    .action(() =>
      withErasures(async (erasures) => {
        const headings = lineOf('REQUESTED', 'MODE', 'STATE', 'FINISHED', 'REFERENCE');
        const count = await output.each(erasures.list(), statusLine, headings);
        if (count === 0) output.note('There are no erasures.');
      }),
    );

  group
    .command('status <reference>')
    .description('the state of a reference')
    .option('--watch', 'show the progress until the erasure is finished')
    .action((reference: string, { watch = false }: { watch?: boolean }) =>
      withErasures(async (erasures) => {
        const before = await erasures.status(reference);
        const status = watch ? await followErasure(erasures, reference, cli) : before;
        output.answer(status, statusText(status));
        if (watch) requireErased(status, watchedText(status), cli);
      }),
    );

  group
    .command('receipts [reference]')
    .description('the receipts of a reference, or of a uid: they prove what was erased, and when')
    .option('--uid <uid>', 'the receipts of this uid')
    .action((reference: string | undefined, { uid }: { uid?: string }) =>
      withErasures(async (erasures) => {
        if ((reference === undefined) === (uid === undefined))
          throw new Failure('usage', 'Name either a reference or --uid <uid>.');
        const receipts = uid === undefined ? erasures.receipts(reference ?? '') : erasures.receiptsOf(uid);
        const hash = 'UID (HASH)'.padEnd(22);
        const headings = lineOf('DONE', 'MODE', 'OUTCOME', 'STATUS', 'TRIES', hash, 'REFERENCE', 'REASON');
        const count = await output.each(receipts, receiptLine, headings);
        if (count === 0) output.note('There are no receipts.');
      }),
    );

  const steer = (
    name: 'pause' | 'resume' | 'retry' | 'cancel',
    reference: string,
    confirmed?: (status: ErasureStatus) => Promise<void>,
  ) =>
    withErasures(async (erasures) => {
      const before = await erasures.status(reference);
      if (!before.finishedAt) await confirmed?.(before);
      else output.note(`${shown(reference)} is already finished. Nothing to ${name}.`);
      const status = before.finishedAt ? before : await erasures[name](reference);
      output.answer(status, statusText(status));
    });

  const steering = {
    pause: 'send nothing more of a reference until it is resumed',
    resume: 'continue a reference after a pause',
    retry: 'try the failed users of a reference again',
  };
  for (const name of ['pause', 'resume', 'retry'] as const)
    group
      .command(`${name} <reference>`)
      .description(steering[name])
      .action((reference: string) => steer(name, reference));

  group
    .command('cancel <reference>')
    .description('do not erase the users of a reference that were not sent yet; cannot be undone')
    .option('--yes', 'do not ask for confirmation')
    .action((reference: string, { yes = false }: { yes?: boolean }) =>
      steer('cancel', reference, async ({ waiting }) => {
        const consequence = `${counted(waiting, 'user')} of ${shown(reference)} would not be erased, and the reference could not be used again.`;
        if (!yes) await confirm(cli, consequence, `cancel ${waiting}`);
      }),
    );
}

/** Shows the progress of a reference until its work ends, or until the command is interrupted. @returns how it stands then */
export async function followErasure(
  erasures: Erasures,
  reference: string,
  { io, output }: CliContext,
): Promise<ErasureStatus> {
  const { interrupted } = io;
  const display = await progressDisplay(io);
  output.sendNotes(display.note);
  const told = new Set<string>();
  const next = (progress: ErasureProgress): void => {
    const { cause } = progress.retrying ?? {};
    if (cause !== undefined && !told.has(cause))
      output.note(`not done at the first attempt (${cause}); it is tried again`);
    if (cause !== undefined) told.add(cause);
    display.show(finishedOf(progress), progress.total, detailOf(progress));
  };
  try {
    await new Promise<void>((resolve, reject) => {
      const following = erasures.progress(reference).subscribe({ next, error: reject, complete: resolve });
      const stop = (): void => {
        following.unsubscribe();
        resolve();
      };
      if (interrupted.aborted) stop();
      else interrupted.addEventListener('abort', stop, { once: true });
    });
  } finally {
    output.sendNotes();
    display.end();
  }
  return erasures.status(reference);
}

/**
 * Says how many users of a reference are not erased although the command has waited, and why.
 * @param left what becomes of those that wait
 * @throws {Failure} unless some were erased, and all others were not found
 */
export function requireErased(status: ErasureStatus, left: string, { output }: CliContext): void {
  const { reference, waiting, done, notFound, failed, vetoed, canceled } = status;
  if (waiting > 0) throw new Failure('unfinished', left);
  if (failed > 0) {
    const hint = `see the log, fix the cause, then: ${pasteable('erasures', 'retry', reference)}`;
    throw new Failure('unfinished', `${counted(failed, 'user')} could not be erased`, hint);
  }
  const reasons = { 'vetoed by erasure.beforeErase': vetoed, canceled, 'not found': notFound };
  const users = Object.entries(reasons).filter(([, count]) => count > 0);
  const text = `Not erased: ${users.map(([why, count]) => `${counted(count, 'user')} ${why}`).join(', ')}.`;
  if (vetoed > 0 || canceled > 0) throw new Failure(vetoed > 0 ? 'vetoed' : 'canceled', text);
  if (notFound > 0 && done === 0) throw noneFound('No user was erased, because none was found');
  if (notFound > 0) output.note(`${text} --dry-run names the lines.`);
}

/** @param problem of a list of which no user is found */
export function noneFound(problem: string): Failure {
  const hint = 'check the uids, and the column; a user who is erased already is not found again.';
  return new Failure('notFound', problem, hint);
}

/** A reference with its counts. */
export function statusText({ complete, retrying, ...status }: ErasureStatus): string {
  return fields({
    ...status,
    state: complete || status.finishedAt ? status.state : UNREAD,
    lastFailure: retrying && retryingText(retrying),
  });
}

/** What becomes of the users who are not erased yet, when a command ends that has only watched. */
export function watchedText({ reference, state, complete, waiting }: ErasureStatus): string {
  const left = `${counted(waiting, 'user')} not erased yet.`;
  const command = (name: string) => pasteable('erasures', name, reference);
  if (!complete)
    return `${left} A part of the list was not stored: run its command again, or: ${command('cancel')}`;
  if (state === 'paused') return `${left} They are paused. To continue: ${command('resume')}`;
  return `${left} This command only watched: your app continues to erase them. To stop that: ${command('pause')} (or cancel). To watch again: ${command('status')} --watch`;
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

function detailOf({ perMinute, msLeft = 0, waitMs = 0, retrying }: ErasureProgress): string {
  const left = msLeft > 0 ? ` | ${duration(msLeft)} left` : '';
  if (retrying && perMinute === 0) return ` | ${retryingText(retrying)}${left}`;
  if (waitMs > 0) return ` | waiting for the rate limit, continues in ${duration(waitMs)}${left}`;
  return ` | ${perMinute} a minute${left}`;
}

/** One line of a list, which is printed as it comes: its columns have fixed widths. */
function lineOf(...cells: readonly unknown[]): string {
  const widths = [20, 9, 19, 9];
  return cells
    .map((cell, n) => shown(cell).padEnd(widths[n] ?? 0))
    .join('  ')
    .trimEnd();
}

function statusLine(status: ErasureStatus): string {
  const { reference, mode, state, requestedAt, total, failed, canceled } = status;
  const left = `${failed > 0 ? `, ${failed} failed` : ''}${canceled > 0 ? `, ${canceled} canceled` : ''}`;
  return lineOf(requestedAt, mode, state, `${finishedOf(status)} of ${total}${left}`, reference);
}

/** With nothing personal in it. */
function receiptLine({ doneAt, mode, outcome, status, attempts, ...receipt }: ErasureReceipt): string {
  const { subject, reference, reason, uncertain = false } = receipt;
  const ended = uncertain ? `${outcome}, uncertain` : outcome;
  return lineOf(doneAt, mode, ended, status ?? '–', `${attempts}×`.padEnd(5), subject, reference, reason);
}
