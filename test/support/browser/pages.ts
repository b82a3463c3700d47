import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const WIDTHS = [1280, 360];
const SCHEMES = ['light', 'dark'] as const;

/** The findings of axe, and widths that do not fit, at each width and in each color scheme. */
export async function findings(page: Page): Promise<string[]> {
  const found: string[] = [];
  await page.evaluate(axe.source);
  for (const width of WIDTHS)
    for (const colorScheme of SCHEMES) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      const where = `${new URL(page.url()).pathname}, ${width} px, ${colorScheme}`;
      const { violations } = await page.evaluate<AxeResults>('axe.run()');
      for (const { id, nodes } of violations)
        found.push(...nodes.map(({ html }) => `${where}: ${id}, ${html}`));
      if (await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth'))
        found.push(`${where}: too wide`);
    }
  return found;
}

/** Presses Tab until the element has the focus. @returns how the focus shows: the style of its outline */
export async function tabTo(page: Page, selector: string): Promise<string> {
  const hasFocus = `document.activeElement.matches(${JSON.stringify(selector)})`;
  for (let presses = 0; !(await page.evaluate<boolean>(hasFocus)); presses += 1) {
    if (presses === 60) throw new Error(`The Tab key does not reach ${selector}.`);
    await page.keyboard.press('Tab');
  }
  return page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle');
}
