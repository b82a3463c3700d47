// `npm run lint`: words that a reader has to learn first, or that are not American English, and what to write instead.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getFileInfo } from 'prettier';

const WORDS: readonly (readonly [word: RegExp, better: string])[] = [
  [/\bcures?\b/i, 'hint'],
  [/\b(told|tells?|telling) of\b/i, 'reported, reports'],
  [/\basked for\b/i, 'requested'],
  [/\bmend(s|ed|ing)?\b/i, 'fix, correct'],
  [/\bat once\b/i, 'immediately; or: at the same time'],
  [/\bby itself\b/i, 'automatically'],
  [/\bis over\b/i, 'is finished, has expired'],
  [/\bover there\b/i, 'in the debate space'],
  [/\bwhoever\b/i, 'name who does it'],
  [/\bso long\b/i, 'for this time'],
  [/\b(MOST|LEAST)_/, 'MAX_, MIN_'],
  [/cancell(ed|ing)/i, 'canceled, canceling'],
  [/(authori|anonymi|recogni|organi|initiali|seriali)s(e|ed|es|ing|ation)\b/i, '-ize, -ization'],
  [/\b(behaviou?r|favou?r|colou?r)(?<=our)/i, '-or'],
];
const CHECKED = /\.(ts|mjs|md|eta|yml)$/;
const LEFT_OUT = new Set(['node_modules', 'dist', 'coverage', '.git', 'check-words.ts']);

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.has(entry.name)) return [];
    return entry.isDirectory() ? filesIn(path) : CHECKED.test(path) ? [path] : [];
  });
}

let found = 0;
for (const file of filesIn('.')) {
  const { ignored } = await getFileInfo(file, { ignorePath: '.gitignore' });
  if (ignored) continue; // such as the copies that a package gets
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    for (const [word, better] of WORDS) {
      const match = word.exec(line);
      if (!match) continue;
      found += 1;
      console.error(`${file}:${index + 1}: "${match[0]}"; write: ${better}`);
    }
  }
}
if (found > 0) {
  console.error(`${found} words of the list in scripts/check-words.ts`);
  process.exitCode = 1;
}
