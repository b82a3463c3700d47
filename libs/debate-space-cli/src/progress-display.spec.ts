import { describe, expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { progressDisplay } from './progress.js';

const displayed = (isTTY: boolean, columns = 80) => {
  const stderr = Object.assign(new PassThrough(), { isTTY, columns });
  const display = progressDisplay({ stderr });
  return { display, text: () => String(stderr.read() ?? '') };
};

describe('the progress', () => {
  it('is a bar on a terminal', () => {
    const { display, text } = displayed(true);
    display.show(1, 4, ' | 12 a minute');
    display.end();
    expect(text()).toMatch(/█+░+ 25 % \| 1 of 4 \| 12 a minute/);
  });

  it.each([
    [100, 40],
    [50, 21],
    [30, 5],
  ])('has on a terminal of %d columns a bar of %d', (columns, size) => {
    const { display, text } = displayed(true, columns);
    display.show(1, 4, ' | 12 a minute');
    display.end();
    const [bar = ''] = /[█░]+/.exec(text()) ?? [];
    expect(bar).toHaveLength(size);
  });

  it('is a line for each tenth elsewhere', () => {
    const { display, text } = displayed(false);
    for (let done = 0; done <= 100; done += 1) display.show(done, 100, '');
    display.note('aside');
    display.end();
    const lines = text().trimEnd().split('\n');
    expect(lines).toEqual([...Array.from({ length: 11 }, (_, tenth) => `${tenth * 10} of 100`), 'aside']);
  });

  it('of nothing at all is one line', () => {
    const { display, text } = displayed(false);
    display.show(0, 0, '');
    display.show(0, 0, '');
    expect(text()).toBe('0 of 0\n');
  });
});
