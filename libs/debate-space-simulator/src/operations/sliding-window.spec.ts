import { describe, expect, it } from '@jest/globals';
import { SlidingWindow } from './client-authorization.js';

describe('the sliding window', () => {
  it('admits as many as fit, and says when the next one will', () => {
    let now = 0;
    const window = new SlidingWindow({ requests: 2, perMs: 10_000 }, () => now);
    expect(window.admit('k')).toBe(0);
    now = 6_000;
    expect(window.admit('k')).toBe(0);
    expect(window.admit('k')).toBe(4);
    now = 9_999;
    expect(window.admit('k')).toBe(1);
    now = 10_000;
    expect(window.admit('k')).toBe(0);
    expect(window.admit('k')).toBe(6);
  });

  it('counts each API key for itself', () => {
    const window = new SlidingWindow({ requests: 1, perMs: 1000 }, () => 0);
    expect([window.admit('a'), window.admit('b'), window.admit('a')]).toEqual([0, 0, 1]);
  });

  it('admits everything without a limit', () => {
    const window = new SlidingWindow(false);
    expect(Array.from({ length: 1000 }, () => window.admit('k'))).not.toContain(1);
  });
});
