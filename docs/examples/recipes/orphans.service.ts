import { Injectable } from '@nestjs/common';
import { DebateSpaceErasures, DebateSpaceService, type ErasureStatus } from 'nestjs-debate-space';

@Injectable()
export abstract class Accounts {
  /** Of at most 100 uids, those that have an account. */
  abstract existing(uids: readonly string[]): Promise<string[]>;
}

@Injectable()
export class OrphansService {
  constructor(
    private readonly debateSpace: DebateSpaceService,
    private readonly erasures: DebateSpaceErasures,
    private readonly accounts: Accounts,
  ) {}

  async find(): Promise<string[]> {
    const orphans: string[] = [];
    for await (const { uid } of this.debateSpace.orphans((uids) => this.accounts.existing(uids))) {
      orphans.push(uid);
    }
    return orphans;
  }

  /** After somebody has looked at them. */
  async erase(orphans: readonly string[]): Promise<ErasureStatus | undefined> {
    if (orphans.length === 0) return undefined; // requestMany refuses a list without a user
    return this.erasures.requestMany(orphans, { mode: 'anonymize', reference: 'orphans-2026' });
  }
}
