import { chromium as playwright, type Browser } from 'playwright-core';
import { programOf } from '../servers/program.js';

/** The Chromium of this machine, if it has one; `CHROMIUM_PATH` says where. */
export const chromium = programOf(process.env.CHROMIUM_PATH ?? 'chromium', 'Chromium', ['/', '/usr/bin']);

/** Without a window. Chromium's sandbox does not run as root, as tests in a container do. */
export function launchChromium(): Promise<Browser> {
  return playwright.launch({ executablePath: chromium.path ?? 'chromium', args: ['--no-sandbox'] });
}
