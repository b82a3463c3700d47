import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** Reads what a server prints until it is ready. @throws Error with what it printed when it ends before */
export async function waitForLine(server: string, printed: Readable, ready: string): Promise<void> {
  const lines: string[] = [];
  for await (const line of createInterface(printed)) {
    lines.push(line);
    if (line.includes(ready)) {
      printed.resume();
      return;
    }
  }
  throw new Error(`${server} has not started:\n${lines.join('\n')}`);
}
