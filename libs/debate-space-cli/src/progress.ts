import cliProgress from 'cli-progress';
import type { GenericFormatter } from 'cli-progress';
import type { CliIo, CommandContext } from './cli-context.js';
import type { ErasureProgress, ErasureStatus } from 'nestjs-debate-space';
import { fromEvent, takeUntil } from 'rxjs';
import { finishedOf, retryingText } from './erasure-text.js';
import type { Plugin } from './plugin.js';
import { duration } from './output.js';

/** Shows how far long work has come. */
export interface ProgressDisplay {
  /** @param detail such as the speed */
  show(done: number, total: number, detail: string): void;
  /** A line beside it. */
  note(text: string): void;
  end(): void;
}

// Node.js finds not all names of a CommonJS module: `Format` comes with the default export only.
const { Format, MultiBar, Presets } = cliProgress;

const LINE_EVERY_MS = 30_000;
const DEFAULT_COLUMNS = 80;
const [MIN_BAR_SIZE, MAX_BAR_SIZE] = [5, 40];

/** A bar on a terminal; elsewhere a line for every tenth of the work, and at least every half a minute. */
export function progressDisplay({ stderr }: Pick<CliIo, 'stderr'>): ProgressDisplay {
  return stderr.isTTY === true ? bar(stderr) : lines(stderr);
}

function bar(stderr: CliIo['stderr']): ProgressDisplay {
  // The figures stay readable on a narrow terminal: the bar is what becomes narrow.
  const format: GenericFormatter = (options, { progress, value, total }, { detail }: { detail: string }) => {
    const figures = ` ${Math.floor(progress * 100)} % | ${value} of ${total}${detail}`;
    const room = (stderr.columns ?? DEFAULT_COLUMNS) - figures.length - 1;
    const barsize = Math.min(MAX_BAR_SIZE, Math.max(MIN_BAR_SIZE, room));
    return Format.BarFormat(progress, { ...options, barsize }) + figures;
  };
  const bars = new MultiBar(
    { stream: stderr, format, barsize: MAX_BAR_SIZE, hideCursor: true, gracefulExit: false, fps: 5 },
    Presets.shades_classic,
  );
  const only = bars.create(0, 0, { detail: '' });
  return {
    show: (done, total, detail) => {
      only.setTotal(total);
      only.update(done, { detail });
    },
    note: (text) => {
      bars.log(`${text}\n`);
    },
    end: () => {
      bars.stop();
    },
  };
}

function lines(stderr: CliIo['stderr']): ProgressDisplay {
  let told = -1;
  let toldAt = -Infinity;
  return {
    show: (done, total, detail) => {
      const tenth = total === 0 ? 10 : Math.floor((10 * done) / total);
      if (tenth === told && performance.now() - toldAt < LINE_EVERY_MS) return;
      told = tenth;
      toldAt = performance.now();
      stderr.write(`${done} of ${total}${detail}\n`);
    },
    note: (text) => {
      stderr.write(`${text}\n`);
    },
    end: () => undefined,
  };
}

/** Shows the progress of a reference until its work ends, or until the command is interrupted. @returns how it stands then */
export async function followErasure(
  { erasures, events }: Pick<Plugin, 'erasures' | 'events'>,
  reference: string,
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
): Promise<ErasureStatus> {
  const { interrupted } = io;
  if (interrupted.aborted) return erasures.status(reference);
  const display = progressDisplay(io);
  output.sendNotes((text) => {
    display.note(text);
  });
  const told = new Set<string>();
  const tell = (cause: string): void => {
    if (told.has(cause)) return;
    told.add(cause);
    output.note(`not done at the first attempt (${cause}); it is tried again`);
  };
  // Of this process immediately; what another one has met is in the progress.
  const troubles = events.events$.subscribe((event) => {
    if (event.type === 'erasure-retrying' && event.reference === reference) tell(event.cause);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      erasures
        .progress(reference)
        .pipe(takeUntil(fromEvent(interrupted, 'abort')))
        .subscribe({
          next: (progress) => {
            if (progress.retrying) tell(progress.retrying.cause);
            display.show(finishedOf(progress), progress.total, detailOf(progress));
          },
          error: reject,
          complete: resolve,
        });
    });
  } finally {
    troubles.unsubscribe();
    output.sendNotes();
    display.end();
  }
  return erasures.status(reference);
}

function detailOf({ perMinute, msLeft, waitMs, failed, canceled, retrying }: ErasureProgress): string {
  const parts: string[] = [];
  if (retrying && perMinute === 0) parts.push(retryingText(retrying));
  else if (waitMs !== undefined) parts.push(`waiting for the rate limit, continues in ${duration(waitMs)}`);
  else parts.push(`${perMinute} a minute`);
  if (msLeft !== undefined && msLeft > 0) parts.push(`${duration(msLeft)} left`);
  if (failed > 0) parts.push(`${failed} failed`);
  if (canceled > 0) parts.push(`${canceled} canceled`);
  return ` | ${parts.join(' | ')}`;
}
