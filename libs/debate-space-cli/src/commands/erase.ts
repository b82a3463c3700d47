import { randomUUID } from 'node:crypto';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ErasureMode, ErasureStatus, DebateSpaceErasures, ErasureDryRun } from 'nestjs-debate-space';
import { confirm } from '../confirmation.js';
import { statusText, watchedText, nobodyFound, requireErased } from '../erasure-text.js';
import { addExamples, commandContext, type CliContext, type CommandContext } from '../cli-context.js';
import { codeOf, Failure } from '../failure.js';
import { type Output, counted, table } from '../output.js';
import { withPlugin, type Plugin } from '../plugin.js';
import { SuspiciousRowCounter, suspiciousTexts, type SuspiciousRows } from '../suspicious-rows.js';
import type { UidRows, UidRow } from '../uid-list.js';
import { UID_FORMATS } from '../uid-format.js';

interface EraseOptions {
  readonly mode: ErasureMode;
  readonly file?: string;
  readonly format?: string;
  readonly column?: string;
  readonly reference?: string;
  readonly requestedBy?: string;
  readonly dryRun?: boolean;
  readonly wait: boolean;
  readonly executeHere?: boolean;
  readonly yes?: boolean;
}

const MODES: readonly ErasureMode[] = ['anonymize', 'delete'];
const MODE_HELP =
  'required. anonymize: remove personal data, keep contributions. delete: remove everything; the uid can never log in again';
const VERBS = { anonymize: 'anonymized', delete: 'deleted with all their contributions' } as const;

/** Anonymizes or deletes users, for good. */
export function addErase(program: Command, cli: CliContext): void {
  const command = program
    .command('erase')
    .description('anonymize or delete users, for good')
    .argument('[uid...]', 'under which the users were registered')
    .addOption(new Option('--mode <mode>', MODE_HELP).choices(MODES).argParser(modeOf).makeOptionMandatory())
    .option('--file <file>', 'a list of uids instead: .csv, .ndjson or .txt, one a line; - is stdin')
    .addOption(new Option('--format <format>', 'of the file; default: by its extension').choices(UID_FORMATS))
    .option('--column <name>', 'of a CSV, or the member of an NDJSON object; default: uid')
    .option('--reference <text>', 'the name of this erasure; the same name continues it; default: a new UUID')
    .option('--requested-by <text>', 'who requested it, for the receipts')
    .option('--dry-run', 'count, and change nothing')
    .addOption(new Option('--no-wait', 'do not wait until your app has done it').conflicts('executeHere'))
    .option('--execute-here', 'erase here, and not in your app: this, and all else that waits in the storage')
    .option('--yes', 'do not ask for confirmation')
    .action(async (uids: string[], options: EraseOptions, invoked: Command) => {
      const { file, format, column, dryRun = false, wait, executeHere = false, yes = false } = options;
      const { snapshotOf, uidList, uidsOf } = await import('../uid-list.js');
      const given = uidList({ uids, file, format, column }, cli.io);
      if (given.isStdin && !yes && !dryRun) {
        throw new Failure('usage', 'stdin is the list, so nobody can confirm. Add --yes to proceed.');
      }
      const context = await commandContext(invoked, cli);
      // What is counted, and confirmed, is what is erased.
      const rows = dryRun || !yes ? await snapshotOf(given) : undefined;
      if (rows !== undefined) {
        // Nothing is sent before it is confirmed, nothing else that waits in the storage either.
        const counts = await withPlugin(
          context,
          { worker: false, shared: !wait || executeHere },
          ({ erasures }) => dryRunOf(erasures, rows, options.mode, context),
        );
        if (dryRun) {
          context.output.answer(counts, dryRunText(counts));
          if (counts.known === 0 && counts.notFound > 0) throw nobodyFound('Nobody was found');
          return;
        }
        if (counts.total === 0) throw new Failure('usage', 'The list has no user. Nothing was requested.');
        const consequence = consequenceOf(counts, options, context);
        await confirm(context, consequence, `${options.mode} ${counts.distinct}`);
      }
      await withPlugin(context, { worker: executeHere, shared: !wait || executeHere }, async (plugin) =>
        erase(
          plugin,
          uidsOf(rows ?? noted(await given.open(), context.output), given.name),
          options,
          context,
        ),
      );
    });
  addExamples(
    command,
    'erase 4711 --mode anonymize',
    'erase --file users.csv --column id --mode delete --dry-run',
    'erase --file users.csv --column id --mode delete --reference GDPR-2026-11',
    'erase --file - --format lines --mode delete --reference GDPR-2026-11 --yes < uids.txt',
  );
}

/** Requests the erasure, and waits until it is carried out – by the app that shares the storage, or here. */
async function erase(
  plugin: Plugin,
  uids: AsyncIterable<string>,
  { mode, reference = randomUUID(), requestedBy, wait, executeHere = false }: EraseOptions,
  { io, output, settings }: CommandContext,
): Promise<void> {
  const { followErasure } = await import('../progress.js');
  const { interrupted: signal } = io;
  const goOn = `Go on: the same command with --reference ${reference}`;
  output.note(`reference: ${reference}`);
  let status: ErasureStatus;
  try {
    status = await plugin.erasures.requestMany(uids, { mode, reference, requestedBy, signal });
  } catch (error) {
    if (codeOf(error) === 'ERR_DEBATE_SPACE_STORAGE') {
      output.note(`It is unknown whether the list was stored. ${goOn}; nobody is erased twice.`);
    } else if (signal.aborted) {
      throw new Failure(
        'unfinished',
        `Interrupted before the list was noted: nothing of it is carried out. ${goOn}.`,
      );
    }
    if (error instanceof Failure && settings.storage.engine !== 'memory')
      await noteUnread(plugin, reference, output);
    throw error;
  }
  const isMemory = settings.storage.engine === 'memory';
  const onlyWatches = wait && !executeHere && !isMemory;
  if (onlyWatches) {
    output.note(
      'Queued. Your app will process it; this command only watches. No app running? Use --execute-here.',
    );
  }
  if (wait) status = await followErasure(plugin, reference, { io, output });
  output.answer(status, statusText(status));
  if (!wait) return;
  const { waiting } = status;
  if (waiting > 0) {
    const running = `They wait in the storage: an app that shares it goes on erasing them. To stop that: debate-space erasures pause ${reference} (or cancel). ${goOn}`;
    const forgotten = `${goOn}. A storage in memory keeps nothing; users who are erased already count as not found`;
    const stopped = `Stopped here; ${counted(waiting, 'user')} not erased yet. ${isMemory ? forgotten : running}.`;
    throw new Failure('unfinished', onlyWatches ? watchedText(status) : stopped);
  }
  requireErased(status, output);
}

/** The rows; at their end, says which ones are suspicious, where nobody is asked. */
async function* noted(rows: UidRows, output: Output): AsyncGenerator<UidRow> {
  const suspicious = new SuspiciousRowCounter();
  for await (const row of rows) {
    suspicious.add(row);
    yield row;
  }
  for (const [text, numbers] of suspiciousTexts(suspicious.counts))
    output.note(`warning: ${text}, in rows ${numbers}`);
}

/** A long list that cannot be read on leaves its reference behind, for the list to be sent again. */
async function noteUnread({ erasures }: Plugin, reference: string, output: Output): Promise<void> {
  const left = await erasures.status(reference).catch(() => undefined);
  if (left === undefined || left.complete) return;
  output.note(
    `${counted(left.total, 'user')} of ${reference} noted; nobody is erased before the list is read to its end. Correct it and run the same command with --reference ${reference}, or discard it: debate-space erasures cancel ${reference}`,
  );
}

function consequenceOf(
  counts: DryRun,
  { mode, executeHere = false }: EraseOptions,
  { settings: { applicationName = '', authUrl = '' } }: CommandContext,
): string {
  const { distinct, duplicates, invalid, known, notFound, suspicious, alreadyRequested } = counts;
  const aside = [
    [notFound, known === 0 ? 'not found: the service knows none of them' : 'not found'],
    [alreadyRequested, 'already requested'],
    [duplicates, 'named twice'],
    [invalid, 'no uid at all'],
    [suspicious, 'suspicious'],
  ] as const;
  const told = aside.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []));
  const doubts = suspiciousTexts(counts).map(([text, rows]) => `\n  ${text}, in rows ${rows}`);
  const hooks = executeHere
    ? '\nThis command processes it, and all else that waits in the storage. It does not call `erasure.beforeErase` of your app.'
    : '';
  return `${counted(distinct, 'user')} of "${applicationName}" at ${new URL(authUrl).host} will be ${VERBS[mode]}. This cannot be undone.${told.length > 0 ? `\n(${told.join(', ')})` : ''}${doubts.join('')}${hooks}`;
}

/** Takes British spelling as well. */
function modeOf(text: string): ErasureMode {
  const mode = MODES.find((each) => each === text.replace(/ise$/, 'ize'));
  if (mode) return mode;
  throw new InvalidArgumentError(`Allowed choices are ${MODES.join(', ')}.`);
}

/** What an erasure would come to. Of the rows without a uid, and of those whose user is not found, the first 100. */
export interface DryRun extends Omit<ErasureDryRun, 'invalidItems' | 'notFoundItems'>, SuspiciousRows {
  readonly invalidRows: readonly number[];
  readonly notFoundRows: readonly number[];
}

/** Looks up which users of the list the service knows. Nothing is stored or erased. */
export async function dryRunOf(
  erasures: DebateSpaceErasures,
  rows: readonly UidRow[],
  mode: ErasureMode,
  { io, output }: CommandContext,
): Promise<DryRun> {
  output.note('Looking up who is registered …');
  const uids = rows.map(({ uid }) => uid ?? ''); // counted as invalid
  const options = { mode, signal: io.interrupted };
  const { invalidItems, notFoundItems, ...counts } = await erasures.dryRun(uids, options);
  const suspicious = new SuspiciousRowCounter();
  rows.forEach((row) => {
    suspicious.add(row);
  });
  const numbersOf = (items: readonly number[]) => items.map((item) => rows[item - 1]?.row ?? item);
  return {
    ...counts,
    invalidRows: numbersOf(invalidItems),
    notFoundRows: numbersOf(notFoundItems),
    ...suspicious.counts,
  };
}

export function dryRunText(counts: DryRun): string {
  const { total, distinct, duplicates, invalid, known, notFound, suspicious, alreadyRequested } = counts;
  const figures = {
    total,
    distinct,
    duplicates,
    invalid,
    known,
    'not found': notFound,
    suspicious,
    'already requested': alreadyRequested,
  };
  const rows = [
    ['rows without a uid', listed(counts.invalidRows, invalid)],
    ['not found in rows', listed(counts.notFoundRows, notFound)],
    ...suspiciousTexts(counts),
  ].filter(([, numbers]) => numbers !== '');
  return table([...Object.entries(figures).map(([name, value]) => [name, String(value)]), ...rows]);
}

function listed(rows: readonly number[], count: number): string {
  return rows.join(', ') + (count > rows.length ? ', …' : '');
}
