import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DebateSpaceService, type OrphanedUser } from 'nestjs-debate-space';
import { Accounts } from '../login/accounts.js';
import { BulkErasureRefused } from './bulk-erasure-form.js';

/** What a look at the debate space has found. */
export interface FoundOrphans {
  readonly uids: readonly string[];
  /** The first of them, to be looked at. */
  readonly first: readonly OrphanedUser[];
  /** Of all uids: tells whether somebody has come or gone since the page was looked at. */
  readonly digest: string;
}

const SHOWN = 100;

/** The users of the debate space whose account in this app is gone. */
@Injectable()
export class Orphans {
  constructor(
    private readonly debateSpace: DebateSpaceService,
    private readonly accounts: Accounts,
  ) {}

  /** @throws {NoAccountsError} when none of the first users has an account */
  async find(): Promise<FoundOrphans> {
    const uids: string[] = [];
    const first: OrphanedUser[] = [];
    for await (const user of this.debateSpace.orphans((asked) => this.#existing(asked))) {
      uids.push(user.uid);
      if (first.length < SHOWN) first.push(user);
    }
    const digest = createHash('sha256').update(uids.toSorted().join('\n')).digest('hex');
    return { uids, first, digest };
  }

  /** The same ones that somebody has looked at. @throws {BulkErasureRefused} when they are others by now */
  async findAgain(body: unknown): Promise<FoundOrphans> {
    const found = await this.find();
    if ((body as { seen?: unknown } | undefined)?.seen === found.digest) return found;
    throw new BulkErasureRefused({ list: 'The list has changed since you opened it. Look at it again.' });
  }

  #existing(uids: readonly string[]): string[] {
    return uids.filter((uid) => this.accounts.find(uid) !== undefined);
  }
}
