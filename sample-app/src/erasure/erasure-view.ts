import type { ErasureProgress, ErasureStatus } from 'nestjs-debate-space';
import { count, inWords, moment } from '../pages/in-words.js';

/** What pages show of an erasure, and what keeps them up to date while it goes on. All text, but for the bar. */
export interface ErasureView {
  readonly reference: string;
  readonly state: ErasureStatus['state'];
  readonly what: string;
  readonly requestedBy: string;
  readonly askedAt: string;
  readonly sentence: string;
  /** For the progress bar. */
  readonly total: number;
  readonly settled: number;
  /** Changes with each quarter, for those who hear the page. */
  readonly announcement: string;
  readonly counts: Readonly<Record<(typeof COUNTED)[number] | 'settled' | 'total', string>>;
  readonly pace: string;
}

const COUNTED = ['done', 'notFound', 'vetoed', 'canceled', 'failed', 'waiting'] as const;

const SENTENCES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'Noted. The debate space is told as soon as it can be.',
  running: 'Under way. It goes on automatically, whether or not anybody watches.',
  paused: 'Paused. Nothing is sent until somebody resumes it.',
  overdue: 'This takes longer than it should. It is still being tried.',
  done: 'Done.',
  canceled: 'Canceled. What had not begun is not erased.',
};

const CUT_OFF =
  'The list was not read to its end, and nothing is erased yet. Upload it again under the same reference.';

export function erasureView(status: ErasureStatus | ErasureProgress): ErasureView {
  const { reference, state, mode, requestedBy, askedAt, complete, total, waiting } = status;
  const settled = total - waiting;
  const counts = COUNTED.map((name) => [name, count(status[name])] as const);
  const quarters = total === 0 ? 0 : Math.floor((4 * settled) / total);
  return {
    reference,
    state,
    what: mode === 'anonymize' ? 'Anonymize' : 'Delete',
    requestedBy: requestedBy ?? 'not known',
    askedAt: moment(askedAt),
    sentence: complete ? SENTENCES[state] : CUT_OFF,
    total,
    settled,
    announcement: `${quarters * 25} percent`,
    counts: {
      ...(Object.fromEntries(counts) as Record<(typeof COUNTED)[number], string>),
      settled: count(settled),
      total: count(total),
    },
    pace: 'perMinute' in status && state === 'running' ? pace(status) : '',
  };
}

function pace({ perMinute, msLeft }: ErasureProgress): string {
  if (perMinute === 0) return '';
  const left = msLeft === undefined ? '' : `, about ${inWords(msLeft)} left`;
  return `${count(Math.round(perMinute))} a minute${left}`;
}
