import type { ErasureProgress, ErasureStatus } from 'nestjs-debate-space';
import { fromEvent, takeUntil } from 'rxjs';
import { progressDisplay } from './progress-display.js';
import type { CommandContext } from './cli-context.js';
import { finishedOf, retryingText } from './erasure-text.js';
import type { Plugin } from './plugin.js';
import { duration } from './text.js';

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
