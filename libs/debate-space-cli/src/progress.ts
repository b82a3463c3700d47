import type { CliIo } from './cli-context.js';
import { printable } from './output.js';

/** Shows how far long work has come. */
export interface ProgressDisplay {
  /** @param detail such as the speed */
  readonly show: (done: number, total: number, detail: string) => void;
  /** A line of its own. */
  readonly note: (text: string) => void;
  readonly end: () => void;
}

const LINE_EVERY_MS = 30_000;

/** A bar on a terminal; elsewhere a line for every tenth of the work, and at least every half a minute. */
export async function progressDisplay({ stderr }: Pick<CliIo, 'stderr'>): Promise<ProgressDisplay> {
  if (stderr.isTTY !== true) return lines(stderr);
  const { default: cliProgress } = await import('cli-progress');
  const format = '{bar} {percentage} % | {value} of {total}{detail}';
  const options = { stream: stderr, format, barsize: 20, hideCursor: true, gracefulExit: false, fps: 5 };
  const bars = new cliProgress.MultiBar(options, cliProgress.Presets.shades_classic);
  const only = bars.create(0, 0, { detail: '' });
  return {
    show: (done, total, detail) => {
      only.setTotal(total);
      only.update(done, { detail: printable(detail) });
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
  let shownTenth = -1;
  let shownAt = -Infinity;
  const note = (text: string) => void stderr.write(`${printable(text)}\n`);
  return {
    show: (done, total, detail) => {
      const tenth = total === 0 ? 10 : Math.floor((10 * done) / total);
      if (tenth === shownTenth && performance.now() - shownAt < LINE_EVERY_MS) return;
      shownTenth = tenth;
      shownAt = performance.now();
      note(`${done} of ${total}${detail}`);
    },
    note,
    end: () => undefined,
  };
}
