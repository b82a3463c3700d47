import type { ChangeListener } from 'durable-jobs';
import { STATES, type LogoutRecords, type OwnLogout } from './logout-records.js';
import type { FinishedEntry, LogoutCounts, ParkedJob, UserHistory, WaitingJob } from '../logout.js';
import { dueAtOf, endedAtOf, endOf, idOf, queueId, userKeysUntil, userPrefix } from './queue-keys.js';
import { UNTRIED } from './stored-logout.js';

/** What operators and the other parts of the plugin see of the logouts in a storage, and do with what waits there. */
export abstract class LogoutDesk {
  /** What this process has claimed, by the id of the entry. */
  protected readonly own = new Map<string, OwnLogout>();
  readonly #listeners = new Set<ChangeListener>();

  constructor(protected readonly records: LogoutRecords) {}

  /** Calls `listener` when this process has changed something that may be due earlier. @returns how to stop */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async counts(): Promise<LogoutCounts> {
    const counts = STATES.map(async (family) => this.records.storage.count(family));
    const [pending = 0, parked = 0] = await Promise.all(counts);
    return { pending, parked };
  }

  /** `endedAt` of the oldest entry that is pending; `undefined` when none is. */
  async oldestPending(): Promise<number | undefined> {
    const [row] = await this.records.storage.range('pending:', endOf('pending:'), { limit: 1 });
    return row && endedAtOf(idOf(row[0]));
  }

  /** At most `limit` parked entries, the longest parked first. @param skip how many to leave out */
  async parked(limit: number, skip = 0): Promise<readonly ParkedJob[]> {
    const range = { limit: skip + limit };
    const rows = await this.records.storage.range('parkedsince:', endOf('parkedsince:'), range);
    const ids = rows.slice(skip).map(([key]) => idOf(key));
    const found = await this.records.find(ids, ['parked']);
    return found.map(({ job, parked: { hint = '', parkedAt = 0 } = {} }) => ({ ...job, hint, parkedAt }));
  }

  /** A parked entry is pending again, due immediately, as if never tried. @returns whether there was one */
  async retryParked(id: string): Promise<boolean> {
    const isMade = await this.records.replaceFound(queueId(id), ['parked'], ({ stored, job }) =>
      // With another turn than the due row that may be left.
      stored && job.entry.uid !== ''
        ? this.records.pending({ ...stored, ...UNTRIED, retriedAt: Date.now(), turn: stored.turn + 1 })
        : undefined,
    );
    this.changed();
    return isMade;
  }

  /** Removes a parked entry. @returns whether there was one */
  async discard(id: string): Promise<boolean> {
    return this.records.replaceFound(queueId(id), ['parked'], ({ stored }) =>
      stored ? this.records.finished(stored, 'discarded') : [],
    );
  }

  async ofUser(uid: string): Promise<UserHistory> {
    const { storage, context, history } = this.records;
    const ids: string[] = [];
    const finished: FinishedEntry[] = [];
    for (const uidHash of context.uids.hashes(uid)) {
      ids.push(...(await this.records.ids(userPrefix(uidHash), endOf(userPrefix(uidHash)))));
      finished.push(...(await history.of(uidHash)));
    }
    const found = await this.records.find(ids, STATES);
    const skewMs = storage.now() - Date.now(); // people read the clock of the machine
    const waiting = found.map(({ state, stored, job, parked }): WaitingJob => {
      if (state === 'parked') return { ...job, state, hint: parked?.hint };
      const own = this.own.get(job.entry.id);
      const dueAt = own ? dueAtOf(own.due) : stored?.dueAt;
      return { ...job, state, dueAt: dueAt === undefined ? undefined : dueAt - skewMs };
    });
    return { waiting, finished };
  }

  /**
   * Removes what is pending for a user and ended no later than this; nothing that is parked. One that is under way may
   * still arrive. @returns how many
   */
  async supersede(uid: string, endedUntil: number): Promise<number> {
    let superseded = 0;
    for (const uidHash of this.records.context.uids.hashes(uid))
      for (const id of await this.records.ids(userPrefix(uidHash), userKeysUntil(uidHash, endedUntil))) {
        const isMade = await this.records.replaceFound(
          id,
          ['pending'],
          ({ stored }) => stored && this.records.finished(stored, 'superseded'),
        );
        if (isMade) superseded += 1;
      }
    return superseded;
  }

  /** Something may be due earlier than the listeners know. */
  protected changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
