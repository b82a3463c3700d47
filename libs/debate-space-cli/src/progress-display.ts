import cliProgress, { type GenericFormatter } from 'cli-progress';
import type { CliIo } from './cli-io.js';

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
