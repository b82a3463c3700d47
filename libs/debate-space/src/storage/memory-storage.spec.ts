import { describe, expect, it } from '@jest/globals';
import { MemoryStorage, memoryStorage } from './memory-storage.js';
import type { NewLogout } from './storage.js';

const newLogouts = (count: number): NewLogout[] =>
  Array.from({ length: count }, (_, n) => {
    const id = `${String(n).padStart(15, '0')}-1`;
    return { id, subject: id, sealed: 'sealed', details: 'logout' };
  });

describe('the storage in memory', () => {
  it('is empty whenever it is opened', async () => {
    const engine = memoryStorage();
    const [one, other] = [await engine.open('app'), await engine.open('app')];
    await one.storage.addLogouts(newLogouts(1));
    expect(await other.storage.counts('logout')).toMatchObject({ waiting: 0, parked: 0 });
  });

  it('keeps so many of the finished logouts, and forgets the oldest', async () => {
    const storage = new MemoryStorage(2);
    await storage.addLogouts(newLogouts(3));
    const { claims } = await storage.claim('logout', 3);
    for (const claim of claims) await storage.finishLogout(claim, 1);
    const subjects = claims.map(({ subject }) => subject);
    const kept = await storage.logoutsOf(subjects);
    expect(kept.map(({ subject }) => subject)).toEqual(subjects.slice(1));
  });

  it('gives out copies: a claim does not change with its row', async () => {
    const storage = new MemoryStorage();
    await storage.addLogouts(newLogouts(1));
    const { claims } = await storage.claim('logout', 1);
    const [claim] = claims;
    if (!claim) throw new Error('it is due');
    await storage.postpone(claim, 0, { ...claim, failures: 1 });
    expect(claim.failures).toBe(0);
    const [waiting] = await storage.listLogouts('waiting', 1);
    expect(waiting).toMatchObject({ failures: 1 });
    expect(waiting).not.toHaveProperty('token');
  });
});
